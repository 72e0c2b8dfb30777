"""Estimate how often the stream asks for each master row: merge counts with the earlier estimate by exponential decay.

With c_i(k) events of key k in interval i, N_i events in all, and h the half-life:

    weight(k) = sum over i of c_i(k) * 2^(-(now - end of interval i) / h)      access_frequency(k) = weight(k) / W

W is the same sum over all events, including those of keys that are not kept. An interval's counts are exact. Of them,
and of the merged weights, only the K heaviest keys are kept: this bounds memory and table, whatever the number of keys.
No estimate is too high, and none is too low by more than

    sum over i of (N_i + W_i) / (K + 1) * 2^(-(now - end of interval i) / h)

because a key that is not kept is no heavier than any of K others. Nothing is lost while there are at most K keys.

X-HYBRIDJOIN 2013, section 1: estimate "by analyzing the stream in a sample time interval", and sort by the estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import compute

from foundation.connections import connect
from spark_apps.master.tables import Names
from spark_apps.warehouse.bulk_load import load
from spark_apps.warehouse.result_rows import read_table
from spark_apps.warehouse.statements import listed

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from foundation.connections import Login
    from spark_apps.pipeline.definition import Master

WEIGHT = "weight"
ANY_TEXT = "LONGTEXT COLLATE utf8mb4_nopad_bin"


class Estimate(NamedTuple):
    """The weights at the end of an interval.

    Attributes:
        until_ms: the interval's end; 0 before the first interval.
        total: W, the decayed number of all events.
        weights: the heaviest keys, in the key columns, and their `weight`.
    """

    until_ms: int
    total: float
    weights: pa.Table


def decay(elapsed_ms: float, half_life_ms: float) -> float:
    """Return the share of a weight that is left after a time: all of it if the clock stepped back."""
    return float(2.0 ** (-max(elapsed_ms, 0.0) / half_life_ms))


def merge(earlier: Estimate, interval: Estimate, half_life_ms: float, keep: int) -> Estimate:
    """Add an interval, whose weights are its counts, to the earlier estimate; keep the heaviest keys."""
    left = decay(interval.until_ms - earlier.until_ms, half_life_ms)
    columns = [*(name for name in interval.weights.column_names if name != WEIGHT), WEIGHT]
    keys = columns[:-1]
    types = pa.schema([(name, interval.weights.schema.field(name).type) for name in columns])
    counts, history = (each.weights.select(columns).cast(types) for each in (interval, earlier))
    faded = history.set_column(len(keys), WEIGHT, compute.multiply(history[WEIGHT], left))
    together = pa.concat_tables([counts, faded.filter(compute.greater(faded[WEIGHT], 0))])
    summed = together.group_by(keys).aggregate([(WEIGHT, "sum")]).rename_columns([*keys, WEIGHT])
    order = [(WEIGHT, "descending"), *((name, "ascending") for name in keys)]
    return Estimate(interval.until_ms, earlier.total * left + interval.total, summed.sort_by(order).slice(0, keep))


def read_estimate(loader: Login, master: Master) -> Estimate:
    """Read the stored estimate."""
    frequency = Names(master.table).frequency
    with connect(loader) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT until_ms, weight FROM master_estimate WHERE master = %s", (master.table,))
            until_ms, total = next(iter(cursor.fetchall()), (0, 0.0))
        weights = read_table(
            connection, f"SELECT {listed(master.key)}, access_frequency * %s AS {WEIGHT} FROM `{frequency}`", (total,)
        )
    return Estimate(int(until_ms), float(total), weights)


def store_estimate(loader: Login, master: Master, estimate: Estimate) -> int:
    """Replace the stored estimate in one transaction; return how many keys it has.

    Keys come from the stream and can be anything. Those that no master row has are left out.
    """
    frequency = Names(master.table).frequency
    keys = listed(master.key, "r")
    kinds = ", ".join(
        f"`{name}` {'BIGINT' if pa.types.is_integer(estimate.weights[name].type) else ANY_TEXT}" for name in master.key
    )
    with connect(loader, bulk=True) as connection, connection.cursor() as cursor:
        # This isolation level takes no locks on the master table: others can write to it.
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        # A table that was just filled looks empty to the optimizer, which then compares each staged key with each row.
        # Without join buffers it looks up each staged key in the index.
        cursor.execute("SET SESSION join_cache_level = 0")
        same_key = " AND ".join(_same_key_condition(cursor, master.table, name) for name in master.key)
        cursor.execute(f"CREATE TEMPORARY TABLE staged ({kinds}, {WEIGHT} DOUBLE NOT NULL)")
        in_key_order = estimate.weights.sort_by([(name, "ascending") for name in master.key])
        load(connection, "staged", in_key_order)
        cursor.execute(f"DELETE FROM `{frequency}`")
        stored = estimate.total and cursor.execute(  # total is 0 when all weights have decayed to nothing
            f"INSERT INTO `{frequency}` ({listed(master.key)}, access_frequency) "
            f"SELECT {keys}, SUM(s.{WEIGHT}) / %s FROM staged AS s STRAIGHT_JOIN `{master.table}` AS r ON {same_key} "
            f"GROUP BY {keys}",
            (estimate.total,),
        )
        cursor.execute(
            "INSERT INTO master_estimate (master, until_ms, weight) VALUES (%s, %s, %s) "
            "ON DUPLICATE KEY UPDATE until_ms = VALUES(until_ms), weight = VALUES(weight)",
            (master.table, estimate.until_ms, estimate.total),
        )
    return int(stored)


def _same_key_condition(cursor: Cursor, table: str, key: str) -> str:
    """Return the SQL condition that a staged key equals the key of a row.

    It compares both by collation, which uses the index, and byte by byte, which is how the stream joins.
    """
    cursor.execute(
        "SELECT character_set_name, collation_name FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = %s AND column_name = %s",
        (table, key),
    )
    ((charset, collation),) = cursor.fetchall()
    if charset is None:
        return f"r.`{key}` = s.`{key}`"
    converted = f"CONVERT(s.`{key}` USING {charset}) COLLATE {collation}"
    return f"r.`{key}` = {converted} AND BINARY CONVERT(r.`{key}` USING utf8mb4) = BINARY s.`{key}`"
