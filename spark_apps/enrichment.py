"""What a task does with its share of a batch: parse, join with the master snapshot, load into the warehouse.

It runs in Spark's Python workers, on Arrow batches. What a worker remembers from batch to batch, the snapshot and its
index, may be lost at any moment without harm.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute

from services.warehouse import connect, login
from spark_apps.events import parse
from spark_apps.semistream.relation.page_file import PageFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from services.warehouse import Connection
    from spark_apps.events import Parsed

POSITION = "source, kafka_partition, kafka_offset"
ENRICHED = ("event_id", "product_key", "store_id", "quantity", "price_cents", "sold_at")
OUTPUT_SCHEMA = "key binary, value binary, headers array<struct<key: string, value: binary>>"


@dataclass(frozen=True)
class Enricher:
    """The function that Spark calls in each task; it travels to the workers.

    Attributes:
        source: the number of the topic's incarnation.
        snapshot: the page file of the master data to join with.
    """

    source: int
    snapshot: Path

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Load each batch's rows and yield the messages for the enriched topic."""
        with connect(login("loader")) as connection:
            for batch in batches:
                yield self._enrich(batch, connection)
                connection.commit()

    def _enrich(self, batch: pa.RecordBatch, connection: Connection) -> pa.RecordBatch:
        parsed = parse(batch["value"])
        positions = _positions(self.source, batch)
        master, keys, order = _master(self.snapshot)
        matched, rows = _match(parsed, keys, order)
        events = parsed.events.filter(matched)
        joined = {name: events[name] for name in ENRICHED if name in events.column_names}
        joined |= {name: master[name].take(rows) for name in ("product_key", "price_cents")}
        columns = [column.to_pylist() for column in (joined[name] for name in ENRICHED)]
        places = parsed.readable.filter(matched).to_pylist()
        _insert(
            connection,
            "sales_enriched",
            ENRICHED,
            [(*positions[i], *row) for i, row in zip(places, zip(*columns, strict=True), strict=True)],
        )
        _load_unmatched(connection, batch, parsed, matched, positions)
        rejected = [(*positions[i], reason, batch["value"][i].as_py()) for i, reason in parsed.rejected]
        _insert(connection, "sales_rejected", ("reason", "event"), rejected)
        return _messages(events, joined, [positions[i] for i in places])


def _positions(source: int, batch: pa.RecordBatch) -> list[tuple[int, int, int]]:
    partitions, offsets = batch["partition"].to_pylist(), batch["offset"].to_pylist()
    return [(source, partition, offset) for partition, offset in zip(partitions, offsets, strict=True)]


@lru_cache(maxsize=1)
def _master(path: Path) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    relation = PageFile(path)
    pages = [relation.read_page(page).rows for page in range(relation.pages)]
    master = pa.Table.from_batches(pages, relation.schema)
    keys = master["product_id"].to_numpy().astype(np.int64)
    order = np.argsort(keys)
    return master, keys[order], order


def _match(parsed: Parsed, keys: np.ndarray, order: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    wanted = compute.fill_null(parsed.events["product_id"], -1).to_numpy()
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    matched = keys[places] == wanted
    return pa.array(matched), order[places[matched]]


def _load_unmatched(
    connection: Connection,
    batch: pa.RecordBatch,
    parsed: Parsed,
    matched: pa.Array,
    positions: list[tuple[int, int, int]],
) -> None:
    without = compute.invert(matched)
    places = parsed.readable.filter(without).to_pylist()
    keys = parsed.events["product_id"].filter(without).to_pylist()
    rows = [(*positions[i], key, batch["value"][i].as_py()) for i, key in zip(places, keys, strict=True)]
    _insert(connection, "sales_unmatched", ("product_id", "event"), rows)


def _insert(connection: Connection, table: str, columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    marks = ", ".join(["%s"] * (3 + len(columns)))
    statement = (
        f"INSERT INTO {table} ({POSITION}, {', '.join(columns)}) VALUES ({marks}) "  # noqa: S608  # names of our own
        "ON DUPLICATE KEY UPDATE source = VALUES(source)"
    )
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


def _messages(events: pa.Table, joined: dict[str, pa.Array], positions: list[tuple[int, int, int]]) -> pa.RecordBatch:
    table = pa.table({"product_id": events["product_id"], **joined})
    rows = [{**row, "sold_at": row["sold_at"].isoformat(timespec="milliseconds") + "Z"} for row in table.to_pylist()]
    names = ("source", "partition", "offset")
    return pa.RecordBatch.from_arrays(
        [
            pa.array([str(row["product_id"]).encode() for row in rows], pa.binary()),
            pa.array([json.dumps(row, separators=(",", ":")).encode() for row in rows], pa.binary()),
            pa.array(
                [[{"key": n, "value": str(v).encode()} for n, v in zip(names, at, strict=True)] for at in positions],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        ],
        names=["key", "value", "headers"],
    )
