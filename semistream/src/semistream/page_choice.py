"""Which waiting tuple's page is read next: the one place that decides it."""

from typing import Protocol

from semistream.waiting_tuples import WaitingTuples


class PageChoice(Protocol):
    """Chooses the waiting tuple whose page the disk-probing phase reads next."""

    def next(self, waiting: WaitingTuples) -> int:
        """Give the slot of a waiting tuple; at least one waits."""


class OldestFirst:
    """The oldest tuple of the queue, or one a fraction of the queue away from it.

    The papers read the page of the oldest tuple (000 section 4.2). While the oldest tuples are being shed, a position
    away from them is better: 15% of the queue's length in 003 section 5.3.1.
    """

    def __init__(self, position: float = 0.0) -> None:
        if not 0 <= position < 1:
            raise ValueError(f"position must be at least 0 and less than 1, got {position}: 0 is the oldest tuple")
        self.position = position

    def next(self, waiting: WaitingTuples) -> int:
        """Give the slot of the tuple at the position."""
        return waiting.queue.at(self.position)
