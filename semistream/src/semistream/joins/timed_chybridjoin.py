"""CHYBRIDJOIN with a limit of time: what waits when it is over is shed (003 section 4)."""

import math
import time
from collections.abc import Callable

from semistream.joins.chybridjoin import CHybridJoin
from semistream.waiting_tuples import WaitingTuples


class TimedCHybridJoin(CHybridJoin):
    """Reads pages until a deadline. From then on the front stage still joins what it can, and the others are shed.

    003 sheds when the stream buffer fills up. Where the stream comes in batches, a batch is the buffer, and its time
    tells what is too much.
    """

    _deadline = math.inf
    _shed: Callable[[WaitingTuples], None] | None = None

    def limit(self, deadline: float, shed: Callable[[WaitingTuples], None]) -> None:
        """Set the time of `time.monotonic` up to which pages are read, and what sheds waiting tuples from then on."""
        self._deadline, self._shed = deadline, shed

    def _disk_phase(self) -> None:
        """Make room in H_S by a page, or by shedding."""
        if self._shed is None or time.monotonic() < self._deadline:
            super()._disk_phase()
        else:
            self._shed(self.waiting)
