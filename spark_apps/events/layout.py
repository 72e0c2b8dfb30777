"""What the scanner looks for in an event: the fields' names as a tree, and how to read each field, as arrays.

A node of the tree is an object or array of the event that has fields in it; node 0 is the event itself. An entry is one
name in an object, or one index in an array, that leads to a field or to another node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spark_apps.events.words import padded
from spark_apps.events.zones import local_offsets
from spark_apps.pipeline.fields import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from spark_apps.pipeline.event_field import EventField
    from spark_apps.pipeline.json_path import Step, Tree

_NO_INDEX = -1


class Layout(NamedTuple):
    """The arrays that the scanner's kernels read.

    Attributes:
        names: the entries' names, one after the other.
        name_offsets: by entry, where its name begins; and where the last one ends.
        indices: by entry, its index in an array.
        targets: by entry, the number of the field that it leads to, or ~node.
        entries: by node, its first entry; and where those of the last one end.
        arrays: by node, True for an array.
        required: a bit for each entry that an event must have.
        kinds: by field, the number of its type (spark_apps/pipeline/fields.py).
        nullable: by field, whether it is allowed to be null.
        quoted: by field, whether a number may stand in quotes.
        least: by field, the smallest number.
        most: by field, the largest number.
        fractions: by field, how many digits behind the point are read as part of a whole number.
        zones: by field, where its time zone begins in the next two; and where the last one ends.
        zone_starts: the local times, in milliseconds, from which on a zone has another offset.
        zone_offsets: those offsets, in milliseconds.
    """

    names: np.ndarray
    name_offsets: np.ndarray
    indices: np.ndarray
    targets: np.ndarray
    entries: np.ndarray
    arrays: np.ndarray
    required: int
    kinds: np.ndarray
    nullable: np.ndarray
    quoted: np.ndarray
    least: np.ndarray
    most: np.ndarray
    fractions: np.ndarray
    zones: np.ndarray
    zone_starts: np.ndarray
    zone_offsets: np.ndarray


def layout_of(fields: Mapping[str, EventField], tree: Tree, nullable: Collection[str]) -> Layout:
    """Return the layout of fields.

    Args:
        fields: what the pipeline's file says about them.
        tree: where an event has them.
        nullable: those that are allowed to be null.
    """
    kinds = [kind_of(field) for field in fields.values()]
    zones = [local_offsets(field.zone) for field in fields.values()]
    numbers = {name: number for number, name in enumerate(fields)}
    nodes: list[Tree] = [tree]
    steps: list[Step] = []
    targets: list[int] = []
    entries = [0]
    required = 0
    for node in nodes:  # grows meanwhile
        for step, target in node.items():
            if isinstance(target, str):
                required |= (not fields[target].optional) << len(steps)
                targets.append(numbers[target])
            else:
                targets.append(~len(nodes))
                nodes.append(target)
            steps.append(step)
        entries.append(len(steps))
    encoded = [step.encode() if isinstance(step, str) else b"" for step in steps]
    return Layout(
        names=padded(b"".join(encoded)),
        name_offsets=np.cumsum([0, *map(len, encoded)]),
        indices=np.array([_NO_INDEX if isinstance(step, str) else step for step in steps]),
        targets=np.array(targets),
        entries=np.array(entries),
        arrays=np.array([any(isinstance(step, int) for step in node) for node in nodes]),
        required=required,
        kinds=np.array([kind.number for kind in kinds]),
        nullable=np.array([name in nullable for name in fields]),
        quoted=np.array([field.quoted for field in fields.values()]),
        least=np.array([kind.least for kind in kinds]),
        most=np.array([kind.most for kind in kinds]),
        fractions=np.array([kind.fraction for kind in kinds]),
        zones=np.cumsum([0, *(len(starts) for starts, _ in zones)]),
        zone_starts=np.concatenate([starts for starts, _ in zones]),
        zone_offsets=np.concatenate([offsets for _, offsets in zones]),
    )
