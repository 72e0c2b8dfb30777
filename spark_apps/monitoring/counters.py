"""Declare a counter: once, where it is counted.

A class declares its counters as fields (`counter`) and properties (`derived`), each with name, unit and help. From that
follow the columns of the table `batch_counters`, the metrics on the metrics page, and the test of docs/counters.md.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Unit = Literal["events", "pages", "seconds", "bytes", "number"]
_DECLARED = "declared"
PHASES = ("source", "read", "join", "load", "messages")


@dataclass(frozen=True)
class Declared:
    """The declaration of one counter.

    Attributes:
        name: the column in `batch_counters`; `freshet_` and the name is the metric.
        unit: the unit of its values.
        help: what it counts: the help text on the metrics page.
        total: the metric adds up since the application's start. Otherwise it shows the newest batch or the present.
        label: Prometheus' label, if the counter has several values, for example `reason`: one value for each reason.
    """

    name: str
    unit: Unit
    help: str
    total: bool = True
    label: str = ""

    @property
    def metric(self) -> str:
        """The metric's name on the metrics page."""
        return f"freshet_{self.name}{'_total' if self.total else ''}"

    def columns(self, value: Any) -> dict[str, object]:  # noqa: ANN401  # a number, or a Counter of them
        """Return the counter's columns in the table `batch_counters`, with the values in them."""
        if self.label == "phase":
            return {f"{phase}_seconds": value[phase] for phase in PHASES}
        if self.label:
            return {self.name: value.total(), f"{self.name}_by_{self.label}": json.dumps(value)}
        return {self.name: value}


def counter(unit: Unit, about: str, *, total: bool = True, label: str = "") -> Any:  # noqa: ANN401  # as dataclasses.field
    """Declare a dataclass field that is a counter; with a label, its value is a `collections.Counter`."""
    metadata = {_DECLARED: (unit, about, total, label)}
    return field(default_factory=Counter, metadata=metadata) if label else field(default=0, metadata=metadata)


def derived(unit: Unit, about: str, *, total: bool = True) -> Callable[[Callable[[Any], Any]], Any]:
    """Declare a property that is a counter, computed from others; None stands for no value."""

    def declare(compute: Callable[[Any], Any]) -> property:
        compute.__dict__[_DECLARED] = (unit, about, total, "")
        return property(compute)

    return declare


def declared(kind: type) -> list[Declared]:
    """List the counters of a class in the order of their declaration: fields, then properties."""
    found = {each.name: each.metadata.get(_DECLARED) for each in fields(kind)}
    found |= {name: vars(each.fget).get(_DECLARED) for name, each in vars(kind).items() if isinstance(each, property)}
    return [Declared(name, *about) for name, about in found.items() if about]


def columns(counts: object) -> dict[str, object]:
    """Return the columns of all counters that an object has, with the values in them."""
    found = [each.columns(getattr(counts, each.name)) for each in declared(type(counts))]
    return {name: value for one in found for name, value in one.items()}
