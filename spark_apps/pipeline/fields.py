"""The types of an event's fields: what is valid, the type in Arrow, the type in the warehouse."""

from __future__ import annotations

import math
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

# The numbers by which the scanner knows the types (spark_apps/events/values.py).
INTEGER, FLOATING, TEXT, UUID, TIMESTAMP = range(5)
LONGEST_TEXT = 255
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d(:?[0-5]\d)?)", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_STORED_UUID = re.compile(r".{14}([0-7].{4}|.{5}[89a-f]).*")  # MariaDB refuses UUIDs of another form
FIRST_YEAR, LAST_YEAR = 1000, 9999  # of MariaDB's DATETIME


class UnreadableEventError(Exception):
    """An event, or a value of it, cannot be read; the message is the reason.

    The reason becomes a row of `<pipeline>_rejected`. The error never leaves the reader of events and asks nobody to do
    anything, so it is not in the tree of foundation/errors.py.
    """


@dataclass(frozen=True)
class Kind:
    """One type of fields.

    Attributes:
        number: its number in the scanner.
        arrow: its type in Arrow.
        sql: its type in the warehouse.
        read: turns a JSON value into a Python value, or raises UnreadableEventError with the rule.
        least: the smallest integer.
        most: the largest integer.
    """

    number: int
    arrow: pa.DataType
    sql: str
    read: Callable[[Any], Any]
    least: int = 0
    most: int = 0


def _integer(arrow: pa.DataType, sql: str, least: int, most: int) -> Kind:
    def read(value: Any) -> int:  # noqa: ANN401  # JSON
        if type(value) is not int or not least <= value <= most:
            raise UnreadableEventError(f"must be a whole number of {least} to {most}")
        return value

    return Kind(INTEGER, arrow, sql, read, least, most)


def _floating(value: Any) -> float:  # noqa: ANN401  # JSON
    if type(value) not in (int, float):
        raise UnreadableEventError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UnreadableEventError("must be a finite number")
    return number


def _text(value: Any) -> str:  # noqa: ANN401  # JSON
    if type(value) is not str or len(value) > LONGEST_TEXT:
        raise UnreadableEventError(f"must be a text of at most {LONGEST_TEXT} characters")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UnreadableEventError("must be a text of whole characters, without half of a surrogate pair")
    return value


def _uuid(value: Any) -> str:  # noqa: ANN401  # JSON
    if type(value) is not str or not _UUID.fullmatch(value):
        raise UnreadableEventError("must be a UUID in the form 8-4-4-4-12")
    standard = str(uuid.UUID(value))
    if not _STORED_UUID.fullmatch(standard):
        raise UnreadableEventError("must be a UUID that MariaDB takes: if digit 13 is 8 to f, digit 17 must be, too")
    return standard


def _time(value: Any) -> datetime:  # noqa: ANN401  # JSON
    problem = UnreadableEventError("must be a time like 2026-01-02T03:04:05.678Z, in the years 1000 to 9999")
    if type(value) is not str or not _TIME.fullmatch(value):
        raise problem
    try:
        moment = datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise problem from None
    if moment.year < FIRST_YEAR:
        raise problem
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


KINDS = {
    "int64": _integer(pa.int64(), "BIGINT", -(2**63), 2**63 - 1),
    "uint32": _integer(pa.int64(), "INT UNSIGNED", 0, 2**32 - 1),
    "float64": Kind(FLOATING, pa.float64(), "DOUBLE", _floating),
    "string": Kind(TEXT, pa.string(), f"VARCHAR({LONGEST_TEXT})", _text),
    "uuid": Kind(UUID, pa.string(), "UUID", _uuid),
    "timestamp": Kind(TIMESTAMP, pa.timestamp("ms"), "DATETIME(3)", _time),
}
