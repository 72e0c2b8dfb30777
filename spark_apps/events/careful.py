"""Read one event with all that JSON allows, or say why it cannot be read."""

from __future__ import annotations

import json
from json.decoder import scanstring  # type: ignore[attr-defined]  # it is there, and json itself reads strings with it
from typing import TYPE_CHECKING, Any, NoReturn

from spark_apps.pipeline.json_values import UnreadableEventError, read_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from spark_apps.pipeline.event_field import EventField
    from spark_apps.pipeline.json_path import Step, Tree

_LONGEST_SHOWN = 60
_SPACE = " \t\n\r"
_whole = json.JSONDecoder().raw_decode


def read_carefully(
    value: bytes | None, fields: Mapping[str, EventField], tree: Tree, nullable: Collection[str]
) -> dict[str, Any]:
    """Read one event; a field that is null, or missing and optional, is None.

    Args:
        value: the event's bytes.
        fields: the fields that it must have, others are ignored.
        tree: where it has them.
        nullable: the fields that are allowed to be null.

    Raises:
        UnreadableEventError: with the reason.
    """
    if not value:
        raise UnreadableEventError("no value" if value is None else "an empty value")
    try:
        return _row(dict(_found(_checked(value), tree)), fields, nullable)
    except RecursionError:
        raise UnreadableEventError("not JSON that we read: nested too deeply") from None


def read_text(name: str, field: EventField, text: bytes | None, nullable: Collection[str]) -> Any:  # noqa: ANN401
    """Read a field from the text of a message's key or header; None if it is null.

    Raises:
        UnreadableEventError: with the reason.
    """
    if text is None:
        if name in nullable:
            return None
        raise UnreadableEventError(f"{name}: missing")
    try:
        value = text.decode("utf-8")
        return read_json(field, value, json.dumps(value))
    except UnicodeDecodeError as problem:
        raise UnreadableEventError(f"{name}: not UTF-8: byte {problem.start}") from None
    except UnreadableEventError as rule:
        raise UnreadableEventError(f"{name}: {rule}, got {_shown(text)}") from None


def _row(
    given: Mapping[str, tuple[Any, str]], fields: Mapping[str, EventField], nullable: Collection[str]
) -> dict[str, Any]:
    """Return the values of an event's fields; `given` has the value and the JSON of those that are there."""
    row: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in given:
            if not field.optional:
                raise UnreadableEventError(f"{name}: missing")
            row[name] = None
            continue
        content, text = given[name]
        if content is None and name in nullable:
            row[name] = None
            continue
        try:
            row[name] = read_json(field, content, text)
        except UnreadableEventError as rule:
            raise UnreadableEventError(f"{name}: {rule}, got {_shown(content)}") from None
    return row


def _checked(value: bytes) -> str:
    """Return the text of an event that is a JSON object."""
    try:
        text = value.decode("utf-8")
        event = json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError as problem:
        raise UnreadableEventError(f"not UTF-8: byte {problem.start}") from None
    except json.JSONDecodeError as problem:
        raise UnreadableEventError(f"not JSON: {problem}") from None
    except ValueError as problem:  # a number of thousands of digits
        raise UnreadableEventError(f"not JSON that we read: {problem}") from None
    if not isinstance(event, dict):
        raise UnreadableEventError("not a JSON object")
    return text


def _found(text: str, tree: Tree, at: int = 0) -> Iterator[tuple[str, tuple[Any, str]]]:
    """Yield each field in an object or array, with its value and the JSON of it; one that is there twice is an error.

    Args:
        text: valid JSON.
        tree: where the fields are in the object or array.
        at: where that begins.
    """
    seen: set[Step] = set()
    for step, start in _children(text, at):
        target = tree.get(step)
        if target is None:
            continue
        if step in seen:
            raise UnreadableEventError(f"{_first_field(target)}: there twice")
        seen.add(step)
        if isinstance(target, str):
            value, end = _whole(text, start)
            yield target, (value, text[start:end])
        else:
            yield from _found(text, target, start)


def _children(text: str, at: int) -> Iterator[tuple[Step, int]]:
    """Yield the members of an object or the elements of an array, and where the value of each begins."""
    opening = text[at := _behind_space(text, at)]
    if opening not in "{[":
        return
    at, index = _behind_space(text, at + 1), 0
    while text[at] not in "}]":
        step: Step = index
        if opening == "{":
            step, at = scanstring(text, at + 1)
            at = _behind_space(text, _behind_space(text, at) + 1)
        yield step, at
        at, index = _behind_space(text, _whole(text, at)[1]), index + 1
        if text[at] == ",":
            at = _behind_space(text, at + 1)


def _behind_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _first_field(target: str | Tree) -> str:
    return target if isinstance(target, str) else _first_field(next(iter(target.values())))


def _refuse_constant(name: str) -> NoReturn:
    raise UnreadableEventError(f"not JSON: {name} is no number in JSON")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
