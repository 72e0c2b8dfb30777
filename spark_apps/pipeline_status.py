"""Print each pipeline's status, and what is wrong with it: `python -m spark_apps.pipeline_status`.

It is the sentence of Freshet's page in Airflow, with the same alarms. The exit code is 1 when something is wrong.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import pymysql

from foundation.connections import login
from foundation.errors import FreshetError
from foundation.settings import settings
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.definition import pipeline_names, read_pipeline
from spark_apps.running.alarms import Bounds, alarms
from spark_apps.running.failures import one_line
from spark_apps.running.lease import is_held
from spark_apps.running.starts import metrics_port
from spark_apps.running.status import status_of
from spark_apps.warehouse.version import tables_are_missing

if TYPE_CHECKING:
    from foundation.settings import Settings


def main() -> None:
    """Print one sentence for each pipeline, and a line for each alarm."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.pipeline_status", description=__doc__)
    parser.add_argument("--paused", nargs="*", default=(), help="the Dags that are paused in Airflow")
    paused = set(parser.parse_args().paused)
    config, well = settings(), True
    try:
        for name in pipeline_names():
            lines, is_well = look(config, name, paused)
            well = well and is_well
            print(*lines, sep="\n  ", flush=True)
    except pymysql.MySQLError as failure:
        sys.exit(f"pipeline_status: {one_line(failure)}")
    sys.exit(not well)


def look(config: Settings, name: str, paused: set[str]) -> tuple[list[str], bool]:
    """Return a pipeline's status and alarms, or what is wrong with its file; and whether all is well."""
    reader, start = login("reader", config), dag_of("enrich", name)
    try:
        status = status_of(reader, config.kafka_bootstrap, read_pipeline(name))
    except FreshetError as error:  # the other pipelines are shown all the same
        return [str(error)], False
    except pymysql.MySQLError as error:
        if not tables_are_missing(error):
            raise
        return [f"{name}: not prepared. To create its tables, trigger the Dag {dag_of('prepare', name)}."], True
    port = metrics_port(reader, name) if is_held(reader, name) else None
    served = [f"metrics: http://127.0.0.1:{port}/metrics"] if port else []
    wrong = alarms(reader, status, Bounds(), paused_dag=start if start in paused else "")
    return [str(status), *served, *wrong], status.is_well and not wrong


if __name__ == "__main__":
    main()
