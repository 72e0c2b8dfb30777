"""CHYBRIDJOIN with a deadline, after which waiting tuples are shed (CHYBRIDJOIN 2017, section 4)."""

import math
import time
from collections.abc import Callable
from typing import Any

from semistream.joins.chybridjoin import CHybridJoin
from semistream.waiting_tuples import WaitingTuples

__all__ = ["TimedCHybridJoin"]


class TimedCHybridJoin(CHybridJoin):
    """Reads pages until a deadline. After it, the front stage still joins the tuples that it matches; others are shed.

    The paper sheds when the stream buffer fills up. When the stream comes in batches, a batch takes the place of the
    buffer, and the tuples that wait at its deadline are the surplus.

    Args:
        *args: as in `SemiStreamJoin`.
        clock: returns the current time; the deadline is a time of this clock.
        **kwargs: as in `CHybridJoin`.
    """

    def __init__(self, *args: Any, clock: Callable[[], float] = time.monotonic, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._clock = clock
        self._deadline = math.inf
        self._shed: Callable[[WaitingTuples], None] | None = None

    def limit(self, deadline: float, shed: Callable[[WaitingTuples], None]) -> None:
        """Read pages until `deadline`; from then on call `shed` to make room in H_S."""
        self._deadline, self._shed = deadline, shed

    def _disk_phase(self) -> None:
        """Make room in H_S: read a page, or shed."""
        if self._shed is None or self._clock() < self._deadline:
            super()._disk_phase()
        else:
            self._shed(self.waiting)
