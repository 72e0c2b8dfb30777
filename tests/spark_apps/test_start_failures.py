"""Each obstacle to a start is reported in one clear line with an exit code, before Spark starts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import pytest

from foundation import spark_launch
from foundation.connections import connect, login
from foundation.settings import ROOT
from services.ports import free_ports
from services.waiting import wait_until
from spark_apps.master.publish import publish
from spark_apps.master.ranking import build_ranking
from spark_apps.master.snapshots import current
from spark_apps.master.tables import prepare
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.tables import check_tables, create_tables
from spark_apps.pipeline.topics import create_topics
from spark_apps.running.lease import is_held
from tests.frozen import frozen
from tests.spark_apps.application import PIPELINES, spark_submit

if TYPE_CHECKING:
    from pathlib import Path

    from foundation.settings import Settings

pytestmark = pytest.mark.integration
SECONDS = 120


@dataclass(frozen=True)
class Fit:
    """A pipeline that could start, and methods that try it with an obstacle."""

    text: str
    folder: Path
    snapshots: Path

    def refusal(self, old: str = "", new: str = "", **environment: str) -> str:
        """Start it with a change of its file or environment, and return the one line that it prints."""
        text = self.text.replace(old, new) if old else self.text
        name = text.partition('name = "')[2].partition('"')[0]
        (self.folder / f"{name}.toml").write_text(text)
        command = [sys.executable, str(ROOT / "spark_apps" / "enrich_stream.py"), "--pipeline", name]
        found = ended(command, FRESHET_PIPELINES=str(self.folder), **environment)
        assert not found.stdout
        (line,) = found.stderr.splitlines()
        assert line.startswith("enrich_stream: ")
        return line


def ended(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that must fail."""
    everything = {**os.environ, **spark_launch.environment(), **environment}
    found = subprocess.run(command, env=everything, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert found.returncode in (1, os.EX_TEMPFAIL)
    return found


@pytest.fixture(scope="module")
def fit(catalogue: Settings, tmp_path_factory: pytest.TempPathFactory) -> Fit:
    """Create everything that a start needs."""
    folder = tmp_path_factory.mktemp("pipelines")
    text = (PIPELINES / "kills.toml").read_text().replace('"kills', '"starts')
    (folder / "starts.toml").write_text(text)
    pipeline, owner = read_pipeline("starts", folder), login("owner", catalogue)
    create_topics(catalogue.kafka_bootstrap, pipeline)
    create_tables(owner, pipeline)
    prepare(owner, pipeline.master)
    snapshots = catalogue.folders.snapshots("starts")
    publish(owner, pipeline.master, build_ranking(owner, pipeline.master), snapshots)
    return Fit(text, folder, snapshots)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('topic = "starts"', 'topic = "nowhere"', "topic 'nowhere' does not exist on 127.0.0.1:"),
        (
            '"quantity", "price',
            '"store_id", "price',
            "'starts_enriched' must have store_id int unsigned, got store_id missing. If",
        ),
        (
            'quantity = "uint32"',
            'quantity = "int64"',
            "'starts_enriched' must have quantity bigint, got quantity int unsigned. If it",
        ),
        (
            'name = "starts"',
            'name = "never_made"',
            "table 'never_made_enriched' does not exist. Run the Dag never_made.prepare",
        ),
        ('table = "product"', 'table = "goods"', "master table 'goods' does not exist. Correct the section [master]."),
        (
            '"price_cents"]\nchanged',
            '"price_cents", "colour"]\nchanged',
            "'product' has no column colour. Correct the section [master].",
        ),
        ("memory_mb = 16", "memory_mb = 4", "memory_mb: Input should be greater than or equal to 8, got 4"),
    ],
)
def test_a_pipeline_that_does_not_fit_what_is_there(fit: Fit, old: str, new: str, says: str) -> None:
    """A start is refused without its topic, tables, columns or master table, or if the file breaks a rule."""
    assert old in fit.text
    assert says in fit.refusal(old, new)


@pytest.fixture(scope="module")
def parts(fit: Fit, migrated: Settings) -> str:
    """Create a master table with binary columns, and return the beginning of the [master] section for it."""
    with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE TABLE part (product_id BIGINT UNSIGNED PRIMARY KEY, product_key INT UNSIGNED NOT NULL, "
            "price_cents INT UNSIGNED NOT NULL, shape VARBINARY(8), flags BIT(3), photo BLOB, updated_at TIMESTAMP(3))"
        )
        cursor.execute("GRANT SELECT ON part TO loader@'%'")
    assert MASTER in fit.text
    return MASTER.replace("product", "part", 1)


MASTER = 'table = "product"\nkey = ["product_id"]\ncolumns = ["product_key", "price_cents"'


def test_master_columns_that_hold_bytes(fit: Fit, parts: str) -> None:
    """Each binary column type is refused, because its values would be loaded as text and change."""
    line = fit.refusal(MASTER, parts + ', "shape", "flags", "photo"')
    assert "master table 'part' has bytes in shape varbinary(8), flags bit(3), photo blob, which" in line
    assert "Leave such columns out of [master]" in line


def test_a_view_that_could_show_an_event_twice(fit: Fit, parts: str, migrated: Settings) -> None:
    """A master column without a unique key is refused, because several rows could match an event in the view."""
    says = "enriched.described_by 'product_key' must have a PRIMARY or UNIQUE key of its own"
    with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
        for key in ("KEY (product_key)", "UNIQUE (product_key, price_cents)"):
            cursor.execute(f"ALTER TABLE part ADD {key}")
            assert says in fit.refusal(MASTER, parts)
        cursor.execute("ALTER TABLE part ADD UNIQUE (product_key)")
    assert check_tables(login("loader", migrated), read_pipeline("starts", fit.folder)) == "product_key"


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("FRESHET_KAFKA_PORT", "no broker answers at 127.0.0.1:{}"),
        ("FRESHET_MARIADB_PORT", "Can't connect to MySQL server on '127.0.0.1'"),
        ("FRESHET_LOADER_PASSWORD", "Access denied for user 'loader'"),
    ],
)
def test_a_service_that_does_not_let_us_in(fit: Fit, variable: str, says: str) -> None:
    """The error for a refused login states the service and what to correct, and never the password."""
    (port,) = free_ports(1)
    line = fit.refusal(**{variable: str(port)})
    assert says.format(port) in line
    assert "orrect FRESHET_" in line
    assert "PASSWORD" not in variable or str(port) not in line


def test_a_stop_while_spark_starts_is_a_stop(fit: Fit, migrated: Settings) -> None:
    """A stop request while Spark starts ends the application with success before the first batch."""
    (fit.folder / "starts.toml").write_text(fit.text)
    command = [sys.executable, str(ROOT / "spark_apps" / "enrich_stream.py"), "--pipeline", "starts"]
    everything = {**os.environ, "PYTHONPATH": str(ROOT), "FRESHET_PIPELINES": str(fit.folder)}
    with subprocess.Popen(command, env=everything, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        loader = login("loader", migrated)
        wait_until(lambda: None if is_held(loader, "starts") else "no", what="the lease", seconds=SECONDS)
        run.terminate()
        written, errors = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, errors
    served, stopped = written.splitlines()
    assert served.startswith("metrics: served at http://127.0.0.1:")
    assert stopped == "enrich_stream: stopped as asked"


def test_a_warehouse_that_hangs_does_not_hold_a_stop_up(fit: Fit, migrated: Settings) -> None:
    """A stop ends the application within seconds while the warehouse hangs, and it reports what it waited for."""
    (fit.folder / "starts.toml").write_text(fit.text)
    command = [sys.executable, str(ROOT / "spark_apps" / "enrich_stream.py"), "--pipeline", "starts"]
    everything = {**os.environ, "PYTHONPATH": str(ROOT), "FRESHET_PIPELINES": str(fit.folder)}
    with (
        frozen(migrated, "mariadb", SECONDS),
        subprocess.Popen(command, env=everything, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run,
    ):
        asks = psutil.Process(run.pid)

        def obstacle() -> str | None:
            ports = [each.raddr.port for each in asks.net_connections() if each.raddr]
            return None if migrated.mariadb_port in ports else "it does not"

        wait_until(obstacle, what="it to ask the warehouse", seconds=SECONDS)
        began = time.monotonic()
        run.terminate()
        _, errors = run.communicate(timeout=SECONDS)
    assert time.monotonic() - began < SECONDS / 4
    (line,) = errors.splitlines()
    assert line.startswith("enrich_stream: warehouse error: Lost connection")


def test_a_snapshot_that_is_damaged_or_gone(fit: Fit) -> None:
    """A start is refused if a page, the file, the manifest or the whole snapshot is damaged or missing."""
    snapshot = current(fit.snapshots)
    assert snapshot
    pages = bytearray(snapshot.path.read_bytes())
    pages[5000] ^= 1
    snapshot.path.write_bytes(pages)
    assert "must match its checksum" in fit.refusal()
    snapshot.path.write_bytes(pages[:-100])
    assert "must be a complete page file: build it again. Run the Dag starts.refresh" in fit.refusal()
    snapshot.manifest.write_text("{")
    assert f"{snapshot.manifest} must be the JSON of a snapshot" in fit.refusal()
    snapshot.manifest.unlink()
    assert "no snapshot in" in fit.refusal()


def test_spark_submit_passes_the_line_and_the_exit_code_on(migrated: Settings) -> None:
    """spark-submit passes on the program's line and exit code, without a stack trace of its own."""
    found = ended(spark_submit(migrated, "none"))
    (line,) = found.stdout.splitlines()
    assert "there is no pipelines/none.toml" in line
    assert "Exception" not in found.stderr
