"""The types that a field of an event can have: what is valid, how Arrow holds it, how the warehouse stores it."""

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

# What the scanner calls the types (events/values.py).
INTEGER, UNSIGNED, FLOATING, TEXT, UUID, TIMESTAMP = range(6)
LARGEST_UNSIGNED = 2**32 - 1
LONGEST_TEXT = 255
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:[0-5]\d)", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_STORED_UUID = re.compile(r".{14}([0-7].{4}|.{5}[89a-f]).*")  # MariaDB refuses the others
FIRST_YEAR = 1000  # of MariaDB's DATETIME


class InvalidValueError(ValueError):
    """A value is not of its field's type; the message says what would be."""


@dataclass(frozen=True)
class Kind:
    """One type.

    Attributes:
        number: what the scanner calls it.
        arrow: its type in memory.
        sql: its type in the warehouse.
        read: makes a Python value of a JSON value, or raises InvalidValueError.
    """

    number: int
    arrow: pa.DataType
    sql: str
    read: Callable[[Any], Any]


def _integer(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:  # noqa: ANN401  # JSON
        if type(value) is not int or not least <= value <= most:
            raise InvalidValueError(f"must be a whole number of {least} to {most}")
        return value

    return read


def _floating(value: Any) -> float:  # noqa: ANN401  # JSON
    if type(value) not in (int, float):
        raise InvalidValueError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValueError("must be a finite number")
    return number


def _text(value: Any) -> str:  # noqa: ANN401  # JSON
    if type(value) is not str or len(value) > LONGEST_TEXT:
        raise InvalidValueError(f"must be a text of at most {LONGEST_TEXT} characters")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidValueError("must be a text of whole characters, half of a surrogate pair stands alone")
    return value


def _uuid(value: Any) -> str:  # noqa: ANN401  # JSON
    if type(value) is not str or not _UUID.fullmatch(value):
        raise InvalidValueError("must be a UUID in the form 8-4-4-4-12")
    standard = str(uuid.UUID(value))
    if not _STORED_UUID.fullmatch(standard):
        raise InvalidValueError("must be a UUID that MariaDB has: digit 17 is 8 to f where digit 13 is")
    return standard


def _time(value: Any) -> datetime:  # noqa: ANN401  # JSON
    problem = InvalidValueError("must be a time like 2026-01-02T03:04:05.678Z, of the years 1000 to 9999")
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
    "int64": Kind(INTEGER, pa.int64(), "BIGINT", _integer(-(2**63), 2**63 - 1)),
    "uint32": Kind(UNSIGNED, pa.int64(), "INT UNSIGNED", _integer(0, LARGEST_UNSIGNED)),
    "float64": Kind(FLOATING, pa.float64(), "DOUBLE", _floating),
    "string": Kind(TEXT, pa.string(), f"VARCHAR({LONGEST_TEXT})", _text),
    "uuid": Kind(UUID, pa.string(), "UUID", _uuid),
    "timestamp": Kind(TIMESTAMP, pa.timestamp("ms"), "DATETIME(3)", _time),
}
