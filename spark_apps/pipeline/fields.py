"""The types of an event's fields in Arrow, in the warehouse and in the scanner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_apps.pipeline.json_values import INTEGERS, LONGEST_TEXT, MILLISECONDS

if TYPE_CHECKING:
    from spark_apps.pipeline.event_field import EventField

# The numbers by which the scanner knows the forms of values (spark_apps/events/values.py).
INTEGER, FLOATING, DECIMAL, BOOLEAN, TEXT, UUID, TIMESTAMP, COUNTED_TIME, DATE, JSON, BYTES = range(11)
SCANNED_DIGITS = 18  # of a decimal: they surely fit into 64 bits


@dataclass(frozen=True)
class Kind:
    """The type of one field.

    Attributes:
        number: its form in the scanner.
        arrow: its type in Arrow.
        sql: its type in the warehouse.
        least: the smallest number that the scanner reads.
        most: the largest one.
        fraction: how many digits behind the point the scanner reads as a whole number.
    """

    number: int
    arrow: pa.DataType
    sql: str
    least: int = 0
    most: int = 0
    fraction: int = 0


def kind_of(field: EventField) -> Kind:
    """Return the type of a field."""
    digits, fraction = field.digits
    if field.kind in INTEGERS:
        return Kind(INTEGER, *_INTEGERS[field.kind], *INTEGERS[field.kind])
    if field.kind == "decimal":
        most = 10 ** min(digits, SCANNED_DIGITS) - 1
        return Kind(DECIMAL, pa.decimal128(digits, fraction), f"DECIMAL({digits},{fraction})", -most, most, fraction)
    if field.unit:
        return Kind(COUNTED_TIME, *_TIME, fraction=MILLISECONDS[field.unit])
    return _OTHERS[field.kind]


_INTEGERS = {
    "int64": (pa.int64(), "BIGINT"),
    "int32": (pa.int32(), "INT"),
    "uint32": (pa.int64(), "INT UNSIGNED"),
}
_TIME = pa.timestamp("ms"), "DATETIME(3)"
_OTHERS = {
    "float64": Kind(FLOATING, pa.float64(), "DOUBLE"),
    "boolean": Kind(BOOLEAN, pa.bool_(), "TINYINT(1)"),
    "string": Kind(TEXT, pa.string(), f"VARCHAR({LONGEST_TEXT})"),
    "uuid": Kind(UUID, pa.string(), "UUID"),
    "timestamp": Kind(TIMESTAMP, *_TIME),
    "date": Kind(DATE, pa.date32(), "DATE"),
    "json": Kind(JSON, pa.string(), "LONGTEXT"),  # MariaDB's JSON refuses what is nested more than 31 levels deep
    "bytes": Kind(BYTES, pa.binary(), f"VARBINARY({LONGEST_TEXT})"),
}
