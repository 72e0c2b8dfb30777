"""`make status` says of each pipeline what the page in Airflow says, alarms included."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from foundation.connections import login
from foundation.settings import ROOT
from spark_apps.running.lease import Lease
from spark_apps.running.starts import record_end, record_metrics_port, record_start
from spark_apps.running.wish import wish_running, wish_stopped

if TYPE_CHECKING:
    from pathlib import Path

    from foundation.settings import Settings

pytestmark = pytest.mark.integration


def status(pipelines: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Ask for the status of the pipelines in a folder."""
    command = [sys.executable, "-m", "spark_apps.pipeline_status", *words]
    environment = {**os.environ, "FRESHET_PIPELINES": str(pipelines)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def pipelines(migrated: Settings, tmp_path: Path) -> Path:
    """Write one pipeline's file; nobody wants its stream."""
    text = (ROOT / "pipelines" / "sales.toml").read_text()
    (tmp_path / "told.toml").write_text(text.replace('name = "sales"', 'name = "told"'))
    wish_stopped(login("loader", migrated), "told", "enrich_stream", by="test")
    return tmp_path


def test_a_paused_dag_of_a_wanted_stream_is_told_and_the_exit_code_is_1(pipelines: Path, migrated: Settings) -> None:
    """A stopped stream is well. Once it is wanted and its own Dag is paused, a line says so and the exit code is 1."""
    well = status(pipelines, "--paused", "told.enrich")
    assert (well.returncode, well.stdout.count("paused")) == (0, 0), well.stdout + well.stderr
    wish_running(login("loader", migrated), "told", "enrich_stream", by="admin")
    ill = status(pipelines, "--paused", "told.enrich")
    wish_stopped(login("loader", migrated), "told", "enrich_stream", by="test")
    assert ill.returncode == 1
    assert "told: not kept" in ill.stdout
    assert "\n  Dag told.enrich is paused" in ill.stdout


def test_a_running_application_is_told_with_its_metrics_page(pipelines: Path, migrated: Settings) -> None:
    """While an application holds its lease, a line has the address of its metrics page; afterwards there is none."""
    loader, line = login("loader", migrated), "\n  metrics: http://127.0.0.1:19123/metrics\n"
    start = record_start(loader, "told", "enrich_stream", 1)
    with Lease(loader, "told"):
        assert "metrics:" not in status(pipelines).stdout
        record_metrics_port(loader, "told", 19123)
        assert line in status(pipelines).stdout
    assert "metrics:" not in status(pipelines).stdout
    record_end(loader, start, 0, "")


def test_a_broken_file_hides_no_other_pipeline(pipelines: Path) -> None:
    """A file that cannot be read is named in a line; the other pipeline's status is there, and the exit code is 1."""
    (pipelines / "broken.toml").write_text("name = ")
    answer = status(pipelines)
    assert answer.returncode == 1
    assert "broken.toml" in answer.stdout
    assert "told: stopped by test since" in answer.stdout
