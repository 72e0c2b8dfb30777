"""CHYBRIDJOIN: HYBRIDJOIN behind the front stage (003 section 3.2, algorithm 1)."""

from typing import Any, ClassVar

import numpy as np

from semistream.joins.hybridjoin import HybridJoin
from semistream.load_shedder import LOOKUP_POSITION, LoadShedder
from semistream.memory_split import Needs
from semistream.page_choice import OldestFirst
from semistream.relation.base import Page


class CHybridJoin(HybridJoin):
    """Joins frequent tuples in the front stage; the others wait for their page.

    Args:
        *args: as for every join.
        shedder: sheds load onto disk as `step` sees the stream buffer fill up; nothing is shed without one.
        **kwargs: as for HYBRIDJOIN.
    """

    needs: ClassVar[Needs] = Needs(front_stage=True)

    def __init__(self, *args: Any, shedder: LoadShedder | None = None, **kwargs: Any) -> None:  # noqa: ANN401
        if shedder is not None:
            kwargs.setdefault("page_choice", OldestFirst(LOOKUP_POSITION))
            if kwargs.get("output", "rows") != "rows":
                raise ValueError(
                    f'output must be "rows" with a shedder, got {kwargs["output"]!r}: a tuple that comes back from '
                    "disk has lost its number; number tuples in a column of the stream"
                )
        super().__init__(*args, **kwargs)
        if shedder is not None and not shedder.store.schema.equals(self.kept):
            raise ValueError(
                f"shed store must have the columns that the join keeps, {self.kept.names}, "
                f"got {shedder.store.schema.names}: make it with the stream's schema"
            )
        self.shedder = shedder
        self._read = 0  # stream tuples that the last iteration read

    def step(self) -> list[Any]:
        """Do one iteration of the loop, load shedding first (line 3).

        The iteration is expected to read as many tuples as the last one did, those that the front stage matches among
        them (003 section 4.1), or as many as there is room for.
        """
        if self.shedder is not None:
            self.shedder.balance(max(self._read, self.waiting.free), self.waiting, self.stream_buffer)
        before = len(self.stream_buffer)
        joined = super().step()
        self._read = before - len(self.stream_buffer)
        return joined

    def finish(self) -> list[Any]:
        """Join everything that waits and everything that was shed."""
        joined = super().finish()
        while self.shedder is not None and self.shedder.to_load:
            self.shedder.load(self.waiting.slots, self.stream_buffer)
            joined += super().finish()
        return joined

    def shed_all(self) -> None:
        """Shed every tuple that waits, as when a batch's time is over."""
        if self.shedder is None:
            raise ValueError("shedder must be given to shed tuples, got none: construct the join with a LoadShedder")
        self.shedder.shed_all(self.waiting, self.stream_buffer)

    def commit(self) -> None:
        """Say that all output given so far is safe: shed files whose tuples are all joined are removed."""
        if self.shedder is not None:
            slots = self.waiting.queue.oldest(1)
            waiting = int(self.waiting.rows.identify(slots)[0]) if len(slots) else self.stream_buffer.oldest
            self.shedder.commit(min(waiting, self.stream_buffer.oldest))

    def _consider(self, page: Page, matched: np.ndarray) -> None:
        """Lines 19 to 22: cache the tuples of the page that f >= threshold stream tuples waited for."""
        self.front_stage.consider(page, matched)

    def _remember_absent(self, keys: np.ndarray) -> None:
        self.front_stage.remember_absent(keys)
