"""Print the status of every pipeline that somebody has started: `python -m spark_apps.pipeline_status`.

The exit code is 1 when a stream that is wanted is not well.
"""

from __future__ import annotations

import sys

import pymysql

from foundation.connections import connect, login
from foundation.errors import FreshetError
from foundation.settings import settings
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.running.failures import one_line
from spark_apps.running.status import status_of
from spark_apps.warehouse.version import tables_are_missing


def main() -> None:
    """Print one sentence for each pipeline."""
    config = settings()
    loader, well = login("loader", config), True
    try:
        with connect(loader) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT DISTINCT pipeline FROM wish WHERE program = 'enrich_stream' ORDER BY pipeline")
            names = [name for (name,) in cursor.fetchall()]
        for name in names:
            status = status_of(loader, config.kafka_bootstrap, read_pipeline(name))
            well = well and status.is_well
            print(status, flush=True)
    except (FreshetError, pymysql.MySQLError) as failure:
        if isinstance(failure, pymysql.MySQLError) and tables_are_missing(failure):
            print("no pipeline yet. To create its tables, trigger the Dag prepare_warehouse.", flush=True)
            return
        sys.exit(f"pipeline_status: {one_line(failure)}")
    sys.exit(not well)


if __name__ == "__main__":
    main()
