"""Choose the page that a join reads next. No other file decides it."""

from typing import Protocol

from semistream.waiting_tuples import WaitingTuples

__all__ = ["OldestFirst", "PageChoice"]


class PageChoice(Protocol):
    """Chooses the waiting tuple whose page the disk-probing phase reads next."""

    def next(self, waiting: WaitingTuples) -> int:
        """Return the slot of a waiting tuple; the caller checks that there is one."""


class OldestFirst:
    """Chooses the oldest tuple of the queue, or the tuple at a fraction of the queue away from it.

    HYBRIDJOIN reads the page of the oldest tuple (HYBRIDJOIN 2011, section 4.2). While the oldest tuples are shed, a
    position away from them is better: 15% of the queue's length in CHYBRIDJOIN 2017, section 5.3.1.
    """

    def __init__(self, position: float = 0.0) -> None:
        if not 0 <= position < 1:
            raise ValueError(f"position must be at least 0 and less than 1, got {position}: use 0 for the oldest tuple")
        self.position = position

    def next(self, waiting: WaitingTuples) -> int:
        """Return the slot of the tuple at the position."""
        return waiting.queue.at(self.position)
