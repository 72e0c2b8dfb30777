"""Declare a counter: once, where it is counted.

A class declares its counters as fields (`counter`) and properties (`derived`), each with name, unit and help. From that
follow the columns of the table `batch_counters`, what a rollup keeps of them, the metrics on the metrics page, and the
test of docs/counters.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Unit = Literal["events", "pages", "seconds", "bytes", "number"]
Roll = Literal["sum", "newest", "most"]
SUM: tuple[Roll, ...] = ("sum",)
_DECLARED = "declared"
PHASES = ("source", "read", "join", "load", "messages")


@dataclass(frozen=True)
class Declared:
    """The declaration of one counter.

    Attributes:
        name: the column in `batch_counters`; `freshet_` and the name is the metric.
        unit: the unit of its values.
        help: what it counts: the help text on the metrics page.
        rolls: what a rollup keeps of the values of its batches: their sum, the newest value, the largest, or several of
            these.
        label: Prometheus' label, if the counter has several values, for example `reason`: one value for each reason. A
            counter with the label `le` is a histogram: number of events by upper bound.
    """

    name: str
    unit: Unit
    help: str
    rolls: tuple[Roll, ...] = SUM
    label: str = ""

    @property
    def total(self) -> bool:
        """Whether the metric adds up since the application's start; the others show the newest batch or the present."""
        return self.rolls == SUM

    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]:
        """The metric's type on the metrics page."""
        if self.label == "le":
            return "histogram"
        return "counter" if self.total else "gauge"

    @property
    def metric(self) -> str:
        """The metric's name on the metrics page."""
        return f"freshet_{self.name}{'_total' if self.kind == 'counter' else ''}"

    def columns(self, value: Any) -> dict[str, Any]:  # noqa: ANN401  # a number, or a Counter of them
        """Return the counter's columns in the table `batch_counters`, with the values in them; a Counter is JSON."""
        if self.label == "phase":
            return {f"{phase}_seconds": value[phase] for phase in PHASES}
        if self.label and self.kind != "histogram":
            return {self.name: value.total(), f"{self.name}_by_{self.label}": value}
        return {self.name: value}


def counter(unit: Unit, about: str, *, rolls: tuple[Roll, ...] = SUM, label: str = "") -> Any:  # noqa: ANN401  # as dataclasses.field
    """Declare a dataclass field that is a counter; with a label, its value is a `collections.Counter`."""
    metadata = {_DECLARED: (unit, about, rolls, label)}
    return field(default_factory=Counter, metadata=metadata) if label else field(default=0, metadata=metadata)


def derived(unit: Unit, about: str, *, rolls: tuple[Roll, ...] = SUM) -> Callable[[Callable[[Any], Any]], Any]:
    """Declare a property that is a counter, computed from others; None stands for no value."""

    def declare(compute: Callable[[Any], Any]) -> property:
        compute.__dict__[_DECLARED] = (unit, about, rolls, "")
        return property(compute)

    return declare


def declared(kind: type) -> list[Declared]:
    """List the counters of a class in the order of their declaration: fields, then properties."""
    found = {each.name: each.metadata.get(_DECLARED) for each in fields(kind)}
    found |= {name: vars(each.fget).get(_DECLARED) for name, each in vars(kind).items() if isinstance(each, property)}
    return [Declared(name, *about) for name, about in found.items() if about]


def columns(counts: object) -> dict[str, Any]:
    """Return the columns of all counters that an object has, with the values in them."""
    found = [each.columns(getattr(counts, each.name)) for each in declared(type(counts))]
    return {name: value for one in found for name, value in one.items()}


def rolls_of(kinds: Iterable[type]) -> dict[str, tuple[Roll, ...]]:
    """Return what a rollup keeps of each column of some classes."""
    counters = [each for kind in kinds for each in declared(kind)]
    return {column: each.rolls for each in counters for column in each.columns(Counter() if each.label else 0)}
