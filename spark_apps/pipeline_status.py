"""Print each pipeline's status, and what is wrong with it: `python -m spark_apps.pipeline_status`.

It is the sentence of Freshet's page in Airflow, with the same alarms. The exit code is 1 when something is wrong.
"""

from __future__ import annotations

import argparse
import sys

import pymysql

from foundation.connections import connect, login
from foundation.errors import FreshetError
from foundation.settings import settings
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.running.alarms import Bounds, alarms
from spark_apps.running.failures import one_line
from spark_apps.running.status import status_of
from spark_apps.warehouse.version import tables_are_missing


def main() -> None:
    """Print one sentence for each pipeline, and a line for each alarm."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.pipeline_status", description=__doc__)
    parser.add_argument("--paused", nargs="*", default=(), help="the Dags that are paused in Airflow")
    paused = set(parser.parse_args().paused)
    config = settings()
    reader, well = login("reader", config), True
    try:
        with connect(reader) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT DISTINCT pipeline FROM wish WHERE program = 'enrich_stream' ORDER BY pipeline")
            names = [name for (name,) in cursor.fetchall()]
        for name in names:
            status = status_of(reader, config.kafka_bootstrap, read_pipeline(name))
            start = dag_of("enrich_stream", name)
            wrong = alarms(reader, status, Bounds(), paused_dag=start if start in paused else "")
            well = well and status.is_well and not wrong
            print(status, *(f"  {line}" for line in wrong), sep="\n", flush=True)
    except (FreshetError, pymysql.MySQLError) as failure:
        if not (isinstance(failure, pymysql.MySQLError) and tables_are_missing(failure)):
            sys.exit(f"pipeline_status: {one_line(failure)}")
        print("no pipeline yet. To create its tables, trigger the Dag prepare_warehouse.", flush=True)
    sys.exit(not well)


if __name__ == "__main__":
    main()
