"""Paths to a field in an event: `$.line.items[0].product-id`, a small part of JSONPath (RFC 9535)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Step = str | int  # the name of a member, or the index of an element
Tree = dict[Step, "str | Tree"]  # where a step leads: to the field of this name, or further
MOST_STEPS = 63  # the scanner marks the steps of an event's fields in the bits of an integer
_STEP = re.compile(
    r"""
    \.(?P<name>[\w-]+)
    | \[ (?: '(?P<quoted>[^'\\]*)' | (?P<json>"(?:[^"\\]|\\.)*") | (?P<index>0|[1-9][0-9]{0,5}) ) \]
    """,
    re.VERBOSE,
)


def steps_of(path: str) -> tuple[Step, ...]:
    """Return the steps of a path, or raise ValueError with the rule."""
    problem = ValueError("must be $ and then .name, ['any name'], [\"any name\"] or [index], each as often as needed")
    if not path.startswith("$") or len(path) == 1:
        raise problem
    steps: list[Step] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if not found:
            raise problem
        at = found.end()
        match found.lastgroup:
            case "index":
                steps.append(int(found["index"]))
            case "json":
                try:
                    name = json.loads(found["json"])
                    name.encode()
                except ValueError:
                    raise problem from None
                steps.append(name)
            case kind:
                steps.append(found[str(kind)])
    return tuple(steps)


def tree_of(paths: Mapping[str, tuple[Step, ...]]) -> Tree:
    """Return all fields' paths as one tree, or raise ValueError if two of them do not go together."""
    tree: Tree = {}
    leads: dict[tuple[Step, ...], str] = {}  # the field that made each node
    count = 0
    for field, steps in paths.items():
        node = tree
        for place, step in enumerate(steps):
            other = next((type(known) for known in node), type(step))
            if other is not type(step):
                raise ValueError(
                    f"paths must lead through the same object or array, got {field!r} with {step!r} where "
                    f"{leads[steps[:place]]!r} has {next(iter(node))!r}"
                )
            last = place == len(steps) - 1
            if step in node and (last or isinstance(node[step], str)):
                raise ValueError(
                    f"no field may be, or be in, the value of another field, got {field!r} and "
                    f"{leads[steps[: place + 1]]!r}"
                )
            leads.setdefault(steps[: place + 1], field)
            leads.setdefault(steps[:place], field)
            count += step not in node
            node = node.setdefault(step, field if last else {})  # type: ignore[assignment]  # the last one is not used
    if count > MOST_STEPS:
        raise ValueError(f"the paths of all fields must have at most {MOST_STEPS} different steps, got {count}")
    return tree
