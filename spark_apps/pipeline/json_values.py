"""Read one JSON value as a field's type, or say which rule it breaks."""

from __future__ import annotations

import base64
import json
import math
import re
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_apps.pipeline.event_field import EventField

LONGEST_TEXT = 255
FIRST_YEAR, LAST_YEAR = 1000, 9999  # of MariaDB's DATETIME
INTEGERS = {"int64": (-(2**63), 2**63 - 1), "int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1)}
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d(?::?[0-5]\d)?)?", re.ASCII
)  # date, time, offset
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_STORED_UUID = re.compile(r".{14}([0-7].{4}|.{5}[89a-f]).*")  # MariaDB refuses UUIDs of another form
_BASE64 = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the warehouse's times are UTC without a time zone
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
_MOST_MILLISECONDS = 10**15  # beyond all years
MILLISECONDS = {"s": 3, "ms": 0}  # by how many places the point of a number of this unit moves


class UnreadableEventError(Exception):
    """An event, or a value of it, cannot be read; the message is the reason.

    The reason becomes a row of `<pipeline>_rejected`. The error never leaves the reader of events and asks nobody to do
    anything, so it is not in the tree of foundation/errors.py.
    """


def read_json(field: EventField, value: Any, text: str) -> Any:  # noqa: ANN401  # JSON
    """Return the Python value of a field, or raise UnreadableEventError with the rule.

    Args:
        field: what the pipeline's file says about it.
        value: what the JSON stands for.
        text: the JSON itself.
    """
    if (field.quoted or field.origin) and type(value) is str and _NUMBER.fullmatch(value):
        try:
            value, text = json.loads(value), value
        except ValueError:  # an integer of thousands of digits
            value = math.inf
    return _READERS[field.kind](field, value, text)


def _integer(field: EventField, value: Any, _: str) -> int:  # noqa: ANN401  # JSON, here and below
    least, most = INTEGERS[field.kind]
    if type(value) is not int or not least <= value <= most:
        raise UnreadableEventError(f"must be a whole number of {least} to {most}")
    return value


def _floating(_: EventField, value: Any, __: str) -> float:  # noqa: ANN401
    if type(value) not in (int, float):
        raise UnreadableEventError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UnreadableEventError("must be a finite number")
    return number


def _decimal(field: EventField, value: Any, text: str) -> Decimal:  # noqa: ANN401
    digits, fraction = field.digits
    number = _exactly(value, text)
    if number is not None:
        shifted = number.scaleb(fraction, _EXACT)
        if abs(shifted) < 10**digits and shifted == shifted.to_integral_value():
            return number.quantize(Decimal(1).scaleb(-fraction), context=_EXACT)
    raise UnreadableEventError(
        f"must be a number with at most {digits - fraction} digits before the point and {fraction} behind it"
    )


def _exactly(value: Any, text: str) -> Decimal | None:  # noqa: ANN401
    """Return a number as it is written, None if it is none."""
    try:
        return Decimal(text) if type(value) in (int, float) else None
    except InvalidOperation:  # an exponent that has no end
        return None


def _boolean(_: EventField, value: Any, __: str) -> bool:  # noqa: ANN401
    if type(value) is not bool:
        raise UnreadableEventError("must be true or false")
    return value


def _text(_: EventField, value: Any, __: str) -> str:  # noqa: ANN401
    if type(value) is not str or len(value) > LONGEST_TEXT:
        raise UnreadableEventError(f"must be a text of at most {LONGEST_TEXT} characters")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UnreadableEventError("must be a text of whole characters, without half of a surrogate pair")
    return value


def _uuid(_: EventField, value: Any, __: str) -> str:  # noqa: ANN401
    if type(value) is not str or not _UUID.fullmatch(value):
        raise UnreadableEventError("must be a UUID in the form 8-4-4-4-12")
    standard = str(uuid.UUID(value))
    if not _STORED_UUID.fullmatch(standard):
        raise UnreadableEventError("must be a UUID that MariaDB takes: if digit 13 is 8 to f, digit 17 must be, too")
    return standard


def _time(field: EventField, value: Any, text: str) -> datetime:  # noqa: ANN401
    moment = _counted_time(field.unit, value, text) if field.unit else _written_time(field.zone, value)
    if moment is None or moment.year < FIRST_YEAR:
        like = {
            "s": "a number of seconds since 1970",
            "ms": "a number of milliseconds since 1970",
            None: f"a time like 2026-01-02T03:04:05.678{'' if field.zone else 'Z'}",
        }[field.unit]
        raise UnreadableEventError(f"must be {like}, in the years {FIRST_YEAR} to {LAST_YEAR}")
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _counted_time(unit: str, value: Any, text: str) -> datetime | None:  # noqa: ANN401
    number = _exactly(value, text)
    milliseconds = None if number is None else number.scaleb(MILLISECONDS[unit], _EXACT)
    if milliseconds is None or abs(milliseconds) >= _MOST_MILLISECONDS:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=int(milliseconds.to_integral_value(ROUND_FLOOR)))
    except OverflowError:
        return None


def _written_time(zone: str | None, value: Any) -> datetime | None:  # noqa: ANN401
    found = _TIME.fullmatch(value) if type(value) is str else None
    if not found or not (found[3] or zone):
        return None
    try:
        read = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[3] or ''}")
        return (read if found[3] else read.replace(tzinfo=ZoneInfo(str(zone)))).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def _date(_: EventField, value: Any, __: str) -> date:  # noqa: ANN401
    try:
        day = date.fromisoformat(value) if type(value) is str and _DATE.fullmatch(value) else None
    except ValueError:
        day = None
    if day is None or day.year < FIRST_YEAR:
        raise UnreadableEventError(f"must be a date like 2026-01-02, in the years {FIRST_YEAR} to {LAST_YEAR}")
    return day


def _json(_: EventField, value: Any, text: str) -> str:  # noqa: ANN401
    if value is None:
        raise UnreadableEventError("must not be null")
    return text


def _bytes(_: EventField, value: Any, __: str) -> bytes:  # noqa: ANN401
    read = base64.b64decode(value) if type(value) is str and _BASE64.fullmatch(value) else None
    if read is None or len(read) > LONGEST_TEXT:
        raise UnreadableEventError(f"must be at most {LONGEST_TEXT} bytes in base64")
    return read


_READERS: dict[str, Callable[[EventField, Any, str], Any]] = {
    **dict.fromkeys(INTEGERS, _integer),
    "float64": _floating,
    "decimal": _decimal,
    "boolean": _boolean,
    "string": _text,
    "uuid": _uuid,
    "timestamp": _time,
    "date": _date,
    "json": _json,
    "bytes": _bytes,
}
