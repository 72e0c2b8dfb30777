"""Let a running join follow its stream and its device: plan again when the skew or the device has changed.

MESHJOIN 2007, section 3.3, leaves this to future work. The memory is divided anew when no tuple waits, so none is lost.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from semistream.joins import BY_NAME, CHybridJoin, HybridJoin, OptimisedXHybridJoin
from semistream.modelled_disk import ModelledDisk
from semistream.planning.machine import Machine
from semistream.planning.predict import CACHE_SKILL, Plan, predict
from semistream.planning.skew import Skew
from semistream.planning.tuner import tune
from semistream.planning.workload import Workload

__all__ = ["Adaptation"]

_WINDOW = 4  # fillings of the join's memory between two looks: then the cache shows the skew
_LEAST_TUPLES = 100_000
_SKEW_MOVED = 0.05  # of the exponent
_DEVICE_MOVED = 1.5  # times slower or faster
_WORTH_IT = 1.05  # times the rate, by the models; less is within their error
_STEPS, _MOST_EXPONENT = 30, 4.0


@dataclass
class _Counts:
    """What a join has done so far."""

    tuples: int
    absent: int  # of them, those that match nothing
    hits: int
    pages: int
    rows: int
    bytes: int
    seeks: int
    probed: int

    @classmethod
    def of(cls, join: HybridJoin) -> "_Counts":
        read = join.relation.counters
        return cls(
            join.stream_buffer.arrived - len(join.stream_buffer), join.front_stage.known_absent, join.front_stage.hits,
            read.pages_read, read.rows_read, read.bytes_read, read.seeks, join.probed,
        )  # fmt: skip

    def since(self, earlier: "_Counts") -> "_Counts":
        return _Counts(*(now - then for now, then in zip(vars(self).values(), vars(earlier).values(), strict=True)))


class Adaptation:
    """Follows one join.

    Args:
        join: CHYBRIDJOIN or Optimised X-HYBRIDJOIN.
        workload: what the join was planned for.
        machine: where it was planned to run.
        clock: returns the seconds that the join has taken so far; by default the join's own.

    Attributes:
        workload: with the skew as it is now.
        machine: with the device as it is now.
        moves: how often the join was changed.
    """

    FOLLOWS = (CHybridJoin, OptimisedXHybridJoin)

    def __init__(
        self, join: HybridJoin, workload: Workload, machine: Machine, clock: Callable[[], float] | None = None
    ) -> None:
        if not isinstance(join, self.FOLLOWS):
            raise TypeError(
                f"join must be one of {', '.join(kind.__name__ for kind in self.FOLLOWS)}, got {type(join).__name__}: "
                "plan the others anew when they are made"
            )
        self.join = join
        self.workload = workload
        self.machine = machine
        self.moves = 0
        self._name = next(name for name, kind in BY_NAME.items() if kind.paper_name == join.paper_name)
        self._planned = workload, machine
        self._is_warm = False
        self._counts = _Counts.of(join)
        self._clock = clock or (lambda: join.seconds)
        self._began = self._clock()

    def look(self) -> list[Any]:
        """Look at what the join has done, and change it if another plan is better.

        Returns:
            The output of tuples that waited, if the join was changed.
        """
        done = _Counts.of(self.join).since(self._counts)
        slots = self.join.front_stage.cache.slots + self.join.waiting.slots
        if done.tuples < max(_WINDOW * slots, _LEAST_TUPLES):
            return []
        if not self._is_warm:  # kernels were loaded, and the first pages checked
            self._is_warm, self._counts, self._began = True, _Counts.of(self.join), self._clock()
            return []
        self.workload = replace(self.workload, exponent=self._exponent(done))
        self.machine = replace(self.machine, disk=self._disk(done, self._clock() - self._began))
        self._counts, self._began = _Counts.of(self.join), self._clock()
        return self._plan_again() if self._has_moved() else []

    def _exponent(self, done: _Counts) -> float:
        """Return the exponent with which the cache has this hit rate; the same if hits say nothing."""
        cached, asked = self.join.front_stage.cache.count, done.tuples - done.absent
        if cached >= self.workload.rows or not asked:
            return self.workload.exponent
        hit_rate, skill = done.hits / asked, CACHE_SKILL if isinstance(self.join, CHybridJoin) else 1.0
        rows = np.array([skill * cached])
        low, high = 0.0, _MOST_EXPONENT
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if Skew(self.workload.rows, middle).head(rows)[0] < hit_rate:
                low = middle
            else:
                high = middle
        return low

    def _disk(self, done: _Counts, seconds: float) -> ModelledDisk:
        """Return the device with which the join took these seconds, or the same if they are about what was expected."""
        machine, disk, reads = self.machine, self.machine.disk, done.pages + done.rows
        values = self.workload.values
        others = done.tuples * (machine.handle + values * machine.output) + done.probed * machine.look_up
        value = machine.value_seconds(self.workload.rows * self.workload.row_bytes)
        others += (done.tuples - done.hits) * (machine.wait + values * value) + done.pages * machine.page
        others += done.rows * machine.row
        others += done.bytes / disk.bytes_per_second + reads * disk.look_up
        expected = others + done.seeks * disk.seek
        if not done.seeks or expected / _DEVICE_MOVED < seconds < expected * _DEVICE_MOVED:
            return disk
        return replace(disk, seek=max(seconds - others, 0.0) / done.seeks)

    def _has_moved(self) -> bool:
        """Return whether skew or device are others than those of the plan."""
        workload, machine = self._planned
        return abs(self.workload.exponent - workload.exponent) > _SKEW_MOVED or self.machine.disk != machine.disk

    def _plan_again(self) -> list[Any]:
        """Give the join the plan that is best now, if that is clearly better than the plan that it has."""
        self._planned = self.workload, self.machine
        join = self.join
        page_rows = join.relation.page_rows
        best = tune(self.workload, join.memory, self.machine, joins=[self._name], page_rows=page_rows)
        now = Plan(
            self._name, join.memory, page_rows, join.shares, join.disk_buffer.partition_pages,
            single_rows_below=join.single_rows.below,
        )  # fmt: skip
        if best.rate < _WORTH_IT * predict(now, self.workload, self.machine).rate:
            return []
        try:
            joined = join.divide_anew(best.plan.shares.front_stage)
        except ValueError:  # the models know the mean size of a page, and the largest one leaves too little memory
            return []
        self.moves += 1
        join.read_partitions_of(best.plan.partition_pages)
        join.single_rows.below = best.plan.single_rows_below
        if self.workload.order == "frequency":
            join.fill()
        return joined
