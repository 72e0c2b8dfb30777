"""Choose the page that a join reads next. No other file decides it."""

from typing import Protocol

from semistream.waiting_tuples import WaitingTuples

__all__ = ["LOOKUP_POSITION", "AwayFromShedding", "OldestFirst", "PageChoice"]

# The distance between the oldest tuple, which is shed first, and the tuple whose page is read next: a fraction of the
# queue's length (CHYBRIDJOIN 2017, section 5.3.1).
LOOKUP_POSITION = 0.15


class PageChoice(Protocol):
    """Chooses the waiting tuple whose page the disk-probing phase reads next."""

    def next(self, waiting: WaitingTuples) -> int:
        """Return the slot of a waiting tuple; the caller checks that there is one."""


class OldestFirst:
    """Chooses the oldest tuple of the queue (HYBRIDJOIN 2011, section 4.2).

    So each iteration joins the tuple that has waited longest, and a tuple waits for h_S iterations at most.
    """

    def next(self, waiting: WaitingTuples) -> int:
        """Return the slot of the oldest tuple."""
        return int(waiting.queue.oldest(1)[0])


class _Sheds(Protocol):
    """Tells whether the oldest tuples of the queue leave it without being joined."""

    @property
    def sheds_queue(self) -> bool:
        """Return whether tuples of the queue are being shed."""


class AwayFromShedding(OldestFirst):
    """Chooses a tuple away from the oldest ones while these are shed, and otherwise the oldest.

    CHYBRIDJOIN 2017, section 5.3.1. Without shedding, the tuples between the oldest one and the position would never be
    chosen.

    Args:
        shedder: sheds the queue's oldest tuples at times.
        position: where the tuple is that is chosen meanwhile: a fraction of the queue's length, from the oldest tuple.
    """

    def __init__(self, shedder: _Sheds, position: float = LOOKUP_POSITION) -> None:
        if not 0 <= position < 1:
            raise ValueError(f"position must be at least 0 and less than 1, got {position}: use 0 for the oldest tuple")
        self._shedder = shedder
        self.position = position

    def next(self, waiting: WaitingTuples) -> int:
        """Return the slot of the tuple at the position, or of the oldest tuple."""
        return waiting.queue.at(self.position) if self._shedder.sheds_queue else super().next(waiting)
