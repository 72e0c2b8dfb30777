"""Prepare benchmark_stream: master data, topics, pipelines, all of the benchmark's own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kafka import KafkaAdminClient

from benchmarks.stream.programs import Program
from foundation.connections import connect, login
from foundation.settings import ROOT
from services.waiting import wait_until
from spark_apps.enriching.planning import planner
from spark_apps.master.catalogue import load_catalogue
from spark_apps.master.publish import publish
from spark_apps.master.ranking import build_ranking
from spark_apps.master.tables import prepare
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.tables import create_tables

if TYPE_CHECKING:
    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Pipeline

Stamped = Literal["CreateTime", "LogAppendTime"]
ROW_BYTES = 120  # of a product
MOST_AFTERMATH_SECONDS = 300
FILL = Path(__file__).with_name("fill_topic.py")
ESTIMATE = ROOT / "spark_apps" / "estimate_frequency.py"
NARROW = 'columns = ["product_key", "price_cents"]'
DESCRIBED = 'columns = ["product_key", "price_cents", "name", "vendor"]'
FACTS = 'columns = ["event_id", "product_key",'
DESCRIBED_FACTS = 'columns = ["event_id", "product_key", "name", "vendor",'


def write_pipeline(  # noqa: PLR0913, PLR0917  # the benchmark's pipelines differ in these
    config: Settings, name: str, topic: str, memory_mb: int, carried: str = NARROW, landed: str = FACTS
) -> Pipeline:
    """Write the demo's pipeline file under another name, without its enriched topic, and create its tables."""
    text = (ROOT / "pipelines" / "sales.toml").read_text()
    for old, new in {
        'name = "sales"': f'name = "{name}"',
        "memory_mb = 64": f"memory_mb = {memory_mb}",
        'topic = "sales"\n': f'topic = "{topic}"\n',
        'topic = "sales.enriched"\n': "",
        NARROW: carried,
        FACTS: landed,
    }.items():
        if old not in text:
            raise ValueError(f"pipelines/sales.toml must have {old!r}, but does not: correct {Path(__file__).name}")
        text = text.replace(old, new)
    config.pipelines.mkdir(exist_ok=True)
    (config.pipelines / f"{name}.toml").write_text(text)
    pipeline = read_pipeline(name)
    create_tables(login("owner", config), pipeline)
    return pipeline


def fill_catalogue(config: Settings, rows: int) -> None:
    """Load the products."""
    load_catalogue(login("owner", config), rows)


def create_topic(config: Settings, topic: str, stamped: Stamped) -> None:
    """Create a topic of four partitions, with timestamps of the producer (CreateTime) or the broker (LogAppendTime)."""
    layout = {"num_partitions": 4, "configs": {"message.timestamp.type": stamped}}
    admin = KafkaAdminClient(bootstrap_servers=config.kafka_bootstrap)
    admin.create_topics({topic: layout}, wait_for_metadata=True)
    admin.close()


def fill_topic(config: Settings, topic: str, *options: object, stamped: Stamped = "LogAppendTime") -> None:
    """Create a topic and put events on it as fast as possible; fill_topic.py says what the options are."""
    create_topic(config, topic, stamped)
    Program(config, FILL, "--topic", topic, *options).wait()


def publish_in_order(config: Settings, *pipelines: Pipeline) -> None:
    """Estimate frequencies from the first pipeline's topic; publish a snapshot in their order for each pipeline."""
    owner = login("owner", config)
    prepare(owner, pipelines[0].master)
    Program(config, ESTIMATE, "--pipeline", pipelines[0].name).wait()
    published: dict[tuple[str, ...], Path] = {}
    for pipeline in pipelines:
        folder = config.folders.snapshots(pipeline.name)
        first = published.setdefault(tuple(pipeline.master.columns), folder)
        if first is folder:
            publish(
                owner, pipeline.master, build_ranking(owner, pipeline.master), folder, plan=planner(owner, pipeline)
            )
        else:
            shutil.copytree(first, folder)


def forget(config: Settings, pipeline: Pipeline) -> None:
    """Empty a pipeline's tables, as if its topic had never been read; first wait for InnoDB's purge of earlier runs."""
    with connect(login("owner", config)) as connection, connection.cursor() as cursor:

        def to_purge() -> str | None:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'")
            ((_, transactions),) = cursor.fetchall()
            return None if int(transactions) == 0 else f"{transactions} transactions' rows"

        wait_until(to_purge, what="InnoDB's purge of earlier runs", seconds=MOST_AFTERMATH_SECONDS)
        for kind in ("enriched", "unmatched", "rejected"):
            cursor.execute(f"TRUNCATE {pipeline.name}_{kind}")
        cursor.execute("DELETE FROM progress WHERE pipeline = %s", (pipeline.name,))
    shutil.rmtree(config.folders.checkpoints(pipeline.name), ignore_errors=True)
