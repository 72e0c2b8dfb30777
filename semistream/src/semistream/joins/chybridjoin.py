"""CHYBRIDJOIN: HYBRIDJOIN behind the front stage (CHYBRIDJOIN 2017, section 3.2, algorithm 1)."""

from typing import Any, ClassVar

import numpy as np
from semistream.joins.hybridjoin import HybridJoin
from semistream.load_shedder import LoadShedder
from semistream.memory_split import Needs
from semistream.page_choice import AwayFromShedding
from semistream.relation.base import Page

__all__ = ["CHybridJoin"]

_FEWEST_MISSES = 1 / 64  # of a stream tuple, so that a front stage that matches all of them promises no endless rate


class CHybridJoin(HybridJoin):
    """Joins frequent tuples in the front stage; the others wait for their page.

    Args:
        *args: as in `SemiStreamJoin`.
        shedder: sheds tuples when the stream buffer fills up; `step` checks that. None: nothing is shed.
        **kwargs: as in `HybridJoin`.
    """

    paper_name: ClassVar[str] = "CHYBRIDJOIN"
    needs: ClassVar[Needs] = Needs(front_stage=True)

    def __init__(self, *args: Any, shedder: LoadShedder | None = None, **kwargs: Any) -> None:  # noqa: ANN401
        if shedder is not None:
            kwargs.setdefault("page_choice", AwayFromShedding(shedder))
            if kwargs.get("output", "rows") != "rows":
                raise ValueError(
                    f'output must be "rows" with a shedder, got {kwargs["output"]!r}: identify tuples by a '
                    "column of the stream, because the join gives a replayed tuple another number"
                )
        super().__init__(*args, **kwargs)
        if shedder is not None and not shedder.store.schema.equals(self.kept):
            raise ValueError(
                f"shed store must have the columns that the join keeps, {self.kept.names}, "
                f"got {shedder.store.schema.names}: open it with the stream's schema"
            )
        self.shedder = shedder
        self._read, self._missed = 1.0, 1.0  # stream tuples read lately, and how many of them had to wait
        self._unusable = 0  # free slots that the last iteration could not fill: the heap for strings was full

    def step(self) -> list[Any]:
        """Run one iteration of the loop; load shedding comes first (algorithm 1, line 3).

        The iteration can read as many tuples that miss as joining has freed slots (algorithm 1, line 18), and those
        that the front stage matches meanwhile. Slots that shedding frees are full again before the next iteration.
        """
        if self.shedder is not None:
            misses = max(self._missed / self._read, _FEWEST_MISSES)
            w = int((self.waiting.room - self._unusable) / misses)
            self.shedder.balance(w, misses, self.waiting, self.stream_buffer)
        return super().step()

    def _stream_phase(self) -> None:
        """Count also how many tuples of the stream have to wait."""
        before, room = len(self.stream_buffer), self.waiting.room
        super()._stream_phase()
        if read := before - len(self.stream_buffer):
            self._read = self._read / 2 + read
            self._missed = self._missed / 2 + room - self.waiting.room
        self._unusable = self.waiting.room if len(self.stream_buffer) else 0

    def finish(self) -> list[Any]:
        """Join all waiting tuples, then all shed tuples."""
        joined = super().finish()
        while self.shedder is not None and self.shedder.to_replay:
            self.shedder.replay(self.waiting.slots, self.stream_buffer)
            joined += super().finish()
        return joined

    def shed_all(self) -> None:
        """Shed every tuple that waits or is in the stream buffer, for example when a batch's time is over."""
        if self.shedder is None:
            raise ValueError("shedder must be given to shed tuples, got none: construct the join with a LoadShedder")
        self.shedder.shed_all(self.waiting, self.stream_buffer)

    def commit(self) -> None:
        """Remove the shed files whose tuples are all joined; the caller has made all output so far safe."""
        if self.shedder is not None:
            slots = self.waiting.queue.oldest(1)
            waiting = int(self.waiting.rows.identify(slots)[0]) if len(slots) else self.stream_buffer.oldest
            self.shedder.commit(min(waiting, self.stream_buffer.oldest))

    def _update_cache(self, page: Page, matched: np.ndarray) -> None:
        """Algorithm 1, lines 19 to 22: cache each tuple of the page that f >= threshold stream tuples waited for."""
        self.front_stage.admit_frequent(page, matched)

    def _remember_absent(self, keys: np.ndarray) -> None:
        self.front_stage.remember_absent(keys)
