"""Read one event with all that JSON allows, or say why it cannot be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from spark_apps.pipeline.fields import UnreadableEventError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from spark_apps.pipeline.fields import Kind

_LONGEST_SHOWN = 60


class _Pairs(list):  # type: ignore[type-arg]
    """The name-value pairs of a JSON object; a class of its own, because json returns an array as a list, too."""


def read_carefully(value: bytes | None, kinds: Mapping[str, Kind], nullable: Collection[str]) -> dict[str, Any]:
    """Read one event.

    Args:
        value: the event's bytes.
        kinds: the fields that it must have, with their types; others are ignored.
        nullable: the fields that are allowed to be null.

    Raises:
        UnreadableEventError: with the reason.
    """
    if not value:
        raise UnreadableEventError("no value" if value is None else "an empty value")
    given = _fields_of(value, kinds)
    row: dict[str, Any] = {}
    for name, kind in kinds.items():
        if name not in given:
            raise UnreadableEventError(f"{name}: missing")
        if given[name] is None and name in nullable:
            row[name] = None
            continue
        try:
            row[name] = kind.read(given[name])
        except UnreadableEventError as rule:
            raise UnreadableEventError(f"{name}: {rule}, got {_shown(given[name])}") from None
    return row


def _fields_of(value: bytes, known: Collection[str]) -> dict[str, Any]:
    """Return the values of the known fields; a known field that occurs twice is an error."""
    try:
        event = json.loads(value.decode("utf-8"), object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
    except UnicodeDecodeError as problem:
        raise UnreadableEventError(f"not UTF-8: byte {problem.start}") from None
    except json.JSONDecodeError as problem:
        raise UnreadableEventError(f"not JSON: {problem}") from None
    except RecursionError:
        raise UnreadableEventError("not JSON that we read: nested too deeply") from None
    except ValueError as problem:  # a number of thousands of digits
        raise UnreadableEventError(f"not JSON that we read: {problem}") from None
    if not isinstance(event, _Pairs):
        raise UnreadableEventError("not a JSON object")
    given: dict[str, Any] = {}
    for name, content in event:
        if name not in known:
            continue
        if name in given:
            raise UnreadableEventError(f"{name}: there twice")
        given[name] = content
    return given


def _refuse_constant(name: str) -> NoReturn:
    raise UnreadableEventError(f"not JSON: {name} is no number in JSON")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
