"""The estimate: how often the stream asks for each master row, merged with earlier estimates by exponential decay.

With c_i(k) events of key k in interval i, N_i events in all, and h the half-life:

    weight(k) = sum over i of c_i(k) * 2^(-(now - end of interval i) / h)      access_frequency(k) = weight(k) / W

W is the same sum over all events, those of forgotten keys included: what is not kept is one class, the rest. Of an
interval's counts, which are exact, and of the merged weights only the K heaviest are kept: memory and table are
bounded, whatever the number of keys. What is guaranteed: no estimate is too high, and none is too low by more than

    sum over i of (N_i + W_i) / (K + 1) * 2^(-(now - end of interval i) / h)

because what is left out is no heavier than any of K others. Nothing is lost while there are at most K keys.

(002 section 1: estimate the frequency "by analyzing the stream in a sample time interval", and sort by it.)
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
    """What is known after an interval.

    Attributes:
        until_ms: the interval's end; 0 before the first one.
        total: W, the decayed number of all events.
        weights: key columns and `weight` of the heaviest keys.
    """

    until_ms: int
    total: float
    weights: pa.Table


def decay(elapsed_ms: float, half_life_ms: float) -> float:
    """What is left of a weight after a time; a clock that stepped back leaves it as it is."""
    return float(2.0 ** (-max(elapsed_ms, 0.0) / half_life_ms))


def merge(earlier: Estimate, interval: Estimate, half_life_ms: float, keep: int) -> Estimate:
    """Add an interval, whose weights are its counts, to what was known before; keep the heaviest keys."""
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
    """Read the estimate as it was stored."""
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
    """Replace the stored estimate in one transaction; return how many keys of the master table it has.

    Keys come from the stream: one that no master row has is left out here, whatever it looks like.
    """
    frequency = Names(master.table).frequency
    keys = listed(master.key, "r")
    kinds = ", ".join(
        f"`{name}` {'BIGINT' if pa.types.is_integer(estimate.weights[name].type) else ANY_TEXT}" for name in master.key
    )
    with connect(loader, bulk=True) as connection, connection.cursor() as cursor:
        # Without locks on the master table: its writers go on.
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        # A table that was just filled looks empty to the optimizer, which then would compare all with all. Without
        # buffers for joins it looks each staged key up in the index.
        cursor.execute("SET SESSION join_cache_level = 0")
        same = " AND ".join(_same(cursor, master.table, name) for name in master.key)
        cursor.execute(f"CREATE TEMPORARY TABLE staged ({kinds}, {WEIGHT} DOUBLE NOT NULL)")
        in_key_order = estimate.weights.sort_by([(name, "ascending") for name in master.key])
        load(connection, "staged", in_key_order)
        cursor.execute(f"DELETE FROM `{frequency}`")
        stored = estimate.total and cursor.execute(  # 0: everything has faded away
            f"INSERT INTO `{frequency}` ({listed(master.key)}, access_frequency) "
            f"SELECT {keys}, SUM(s.{WEIGHT}) / %s FROM staged AS s STRAIGHT_JOIN `{master.table}` AS r ON {same} "
            f"GROUP BY {keys}",
            (estimate.total,),
        )
        cursor.execute(
            "INSERT INTO master_estimate (master, until_ms, weight) VALUES (%s, %s, %s) "
            "ON DUPLICATE KEY UPDATE until_ms = VALUES(until_ms), weight = VALUES(weight)",
            (master.table, estimate.until_ms, estimate.total),
        )
    return int(stored)


def _same(cursor: Cursor, table: str, key: str) -> str:
    """Return the condition that a staged key is a row's: as the row's index compares texts, and byte by byte."""
    cursor.execute(
        "SELECT character_set_name, collation_name FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = %s AND column_name = %s",
        (table, key),
    )
    ((charset, collation),) = cursor.fetchall()
    if charset is None:
        return f"r.`{key}` = s.`{key}`"
    sought = f"CONVERT(s.`{key}` USING {charset}) COLLATE {collation}"
    return f"r.`{key}` = {sought} AND BINARY CONVERT(r.`{key}` USING utf8mb4) = BINARY s.`{key}`"
