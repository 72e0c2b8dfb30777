"""What the scanner looks for in an event: the fields' names as a tree, and how to read each field, as arrays.

A node of the tree is an object or array of the event that has fields in it; node 0 is the event itself. An entry is one
name in an object, or one index in an array, that leads to a field or to another node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spark_apps.events.words import padded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_apps.pipeline.fields import Kind

Step = str | int  # the name of a member, or the index of an element
Tree = dict[Step, "str | Tree"]  # where a step leads: to a field of this name, or further
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
        least: by field, the smallest integer.
        most: by field, the largest integer.
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
    least: np.ndarray
    most: np.ndarray


def layout_of(kinds: Mapping[str, Kind], tree: Tree, nullable: set[str], optional: set[str]) -> Layout:
    """Return the layout of fields.

    Args:
        kinds: the fields' types.
        tree: where an event has them.
        nullable: the fields that are allowed to be null.
        optional: the fields that an event need not have.
    """
    numbers = {name: number for number, name in enumerate(kinds)}
    nodes: list[Tree] = [tree]
    steps: list[Step] = []
    targets: list[int] = []
    entries = [0]
    required = 0
    for node in nodes:  # grows meanwhile
        for step, target in node.items():
            if isinstance(target, str):
                required |= (target not in optional) << len(steps)
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
        kinds=np.array([kind.number for kind in kinds.values()]),
        nullable=np.array([name in nullable for name in kinds]),
        least=np.array([kind.least for kind in kinds.values()]),
        most=np.array([kind.most for kind in kinds.values()]),
    )
