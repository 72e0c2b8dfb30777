"""Write the result of a quality check into the table `quality_check`, where the pipeline's Dag watch looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pymysql

from foundation.connections import ANSWER_SECONDS, connect
from foundation.errors import TableError
from spark_apps.pipeline.dags import dag_of
from spark_apps.warehouse.version import tables_are_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foundation.connections import Login

KEPT_DAYS = 30


def record(loader: Login, pipeline: str, suite: str, expectations: int, failures: Sequence[str]) -> None:
    """Write a result, and remove those that are older than 30 days.

    Args:
        loader: the account that writes, with its address.
        pipeline: whose rows or master data were checked.
        suite: what they were checked against.
        expectations: how many were checked.
        failures: a line for each that is not met.

    Raises:
        TableError: the table does not exist.
    """
    row = (pipeline, suite, expectations, len(failures), "; ".join(failures))
    try:
        with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO quality_check (pipeline, suite, expectations, failed, summary) "
                "VALUES (%s, %s, %s, %s, LEFT(%s, 1000))",
                row,
            )
            cursor.execute(
                "DELETE FROM quality_check WHERE pipeline = %s AND suite = %s AND id <> %s "
                "AND checked_at < UTC_TIMESTAMP() - INTERVAL %s DAY",
                (pipeline, suite, cursor.lastrowid, KEPT_DAYS),
            )
    except pymysql.MySQLError as error:
        if not tables_are_missing(error):
            raise
        raise TableError(
            f"the warehouse's tables are of an older version: {error.args[-1]}",
            f"Run the Dag {dag_of('prepare', pipeline)}.",
        ) from error
