"""Enriched rows as messages of the enriched topic: a key, JSON, and the event's position as headers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute
from pyarrow import types as arrow_types

from spark_apps.events.base64_text import base64_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
HEADERS = ("source", "partition", "offset")
SPARK_SCHEMA = "key string, value string, headers array<struct<key: string, value: binary>>"
_PLAIN = r'^[^"\\\x00-\x1f]*$'


def messages(
    incarnation: int, key: Sequence[str], columns: Sequence[str], rows: pa.Table, json_columns: Collection[str] = ()
) -> pa.RecordBatch:
    """Make one message for each row.

    Args:
        incarnation: the number of the topic's incarnation.
        key: the columns of the message's key: all messages with the same key are in one partition.
        columns: the columns of the JSON.
        rows: must have those columns, kafka_partition and kafka_offset.
        json_columns: the columns whose texts are JSON already.
    """
    written = {name: rows[name].combine_chunks() for name in columns}
    texts = [column.fill_null("null") if name in json_columns else _json(column) for name, column in written.items()]
    parts = [
        compute.binary_join_element_wise(f'"{name}":', text, "") for name, text in zip(columns, texts, strict=True)
    ]
    body = compute.binary_join_element_wise(*parts, ",")
    value = compute.binary_join_element_wise("{", body, "}", "")
    keys = [rows[name].combine_chunks().cast(pa.string()) for name in key]
    joined = compute.binary_join_element_wise(*keys, ",") if len(keys) > 1 else keys[0]
    return pa.RecordBatch.from_arrays([joined, value, _headers(incarnation, rows)], schema=SCHEMA)


def _json(column: pa.Array) -> pa.Array:
    """Write a column's values as JSON."""
    if arrow_types.is_timestamp(column.type):
        text = compute.binary_join_element_wise('"', compute.strftime(column, "%Y-%m-%dT%H:%M:%SZ"), '"', "")
    elif arrow_types.is_floating(column.type):
        # Infinity and NaN become null: JSON has neither, and in SQL a division by zero is NULL.
        text = compute.if_else(compute.is_finite(column), column.cast(pa.string()), None)
    elif _is_written_alike(column.type):
        text = column.cast(pa.string())
    elif arrow_types.is_binary(column.type):
        text = compute.binary_join_element_wise('"', base64_texts(column), '"', "")
    else:
        column = column.cast(pa.string())  # for example a date
        if compute.all(compute.match_substring_regex(column, _PLAIN), min_count=0).as_py():
            text = compute.binary_join_element_wise('"', column, '"', "")
        else:
            text = pa.array([None if each is None else json.dumps(each) for each in column.to_pylist()], pa.string())
    return text.fill_null("null")


def _is_written_alike(kind: pa.DataType) -> bool:
    """Return whether Arrow's text of a value is its JSON."""
    return bool(arrow_types.is_integer(kind) or arrow_types.is_decimal(kind) or arrow_types.is_boolean(kind))


def _headers(incarnation: int, rows: pa.Table) -> pa.Array:
    """Return the headers of each message: its event's position, by which a consumer recognises a duplicate."""
    count = rows.num_rows
    values = [
        pa.repeat(str(incarnation), count),
        rows["kafka_partition"].combine_chunks().cast(pa.string()),
        rows["kafka_offset"].combine_chunks().cast(pa.string()),
    ]
    row_by_row = (np.arange(count)[:, None] + np.arange(len(values)) * count).ravel()
    interleaved = pa.concat_arrays(values).take(pa.array(row_by_row))
    names = pa.array(HEADERS).take(pa.array(np.tile(np.arange(len(values)), count)))
    entries = pa.StructArray.from_arrays([names, interleaved.cast(pa.binary())], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * len(values)), entries)
