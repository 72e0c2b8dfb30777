"""Counts the hits of each cached tuple, and adapts the threshold for new ones (CHYBRIDJOIN 2017, section 3.2.1).

The paper overwrites the least frequent tuple. A search through all tuples is too expensive. Here, as in the clock
algorithm, a hand moves over `_SWEEP` tuples, picks the least frequent of them as victim, and halves each frequency it
passes, so that old hits fade.
"""

import numpy as np
from semistream.kernels import kernel

__all__ = ["FrequencyRecorder"]

_SWEEP = 8
_ROUNDS = 4
_LEAST_IF_FULL = 2  # rows that a single tuple waits for would push hot rows out of a full cache


class FrequencyRecorder:
    """The frequency of each cached tuple, and the frequency that another tuple needs to be cached.

    The threshold changes after a window of several rounds of the queue. If R is in the order of frequency, its first
    pages bring all frequent tuples at once. With a shorter window the threshold would fall behind them, and tuples of
    rare pages would overwrite frequent ones.

    Args:
        slots: of the cache.
        waiting: stream tuples that can wait: about as many come in a round of the queue.

    Attributes:
        frequency: the hits of each slot; each pass of the hand halves them.
        threshold: how many stream tuples must match a master tuple at once before it is cached. It falls while the
            cache has room or few tuples are overwritten, and rises when many are.
    """

    def __init__(self, slots: int, waiting: int = 0) -> None:
        self.frequency = np.zeros(slots, dtype=np.int32)
        self.threshold = 2
        self._window = max(8 * slots, _ROUNDS * waiting)
        self._seen = 0
        self._overwritten = 0
        self._hand = 0

    @staticmethod
    def bytes_per_slot() -> int:
        """Return the bytes that the frequency of a cached tuple takes."""
        return 4

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.frequency.nbytes

    def victims(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choose slots to overwrite for tuples that occurred `f` times: at most one of `_SWEEP` slots.

        A tuple does not overwrite one that is more frequent.

        Returns:
            The indices in `f` of the tuples that get a slot, and their slots.
        """
        slots = len(self.frequency)
        sweep = min(_SWEEP, slots)
        least = np.empty(min(len(f), slots // sweep), dtype=np.int64)
        self._hand = int(_sweep(least, sweep, self._hand, self.frequency))
        admitted = np.flatnonzero(f[: len(least)] >= self.frequency[least])
        self._overwritten += len(admitted)
        return admitted, least[admitted]

    def adapt(self, tuples: int, *, room: bool) -> None:
        """Adapt the threshold after `tuples` more look-ups; `room` is true if the cache has room."""
        if room:
            self.threshold = max(1, self.threshold - 1)
            return
        self._seen += tuples
        if self._seen >= self._window:
            if self._overwritten > len(self.frequency) // 64:
                self.threshold += 1
            elif self._overwritten <= len(self.frequency) // 256:
                self.threshold = max(_LEAST_IF_FULL, self.threshold - 1)
            self._seen = 0
            self._overwritten = 0


@kernel
def _sweep(victims: np.ndarray, sweep: int, hand: int, frequency: np.ndarray) -> int:
    """Write the least frequent slot of each sweep into `victims`, and return where the hand stops."""
    for i in range(len(victims)):
        least = hand
        for _ in range(sweep):
            if frequency[hand] < frequency[least]:
                least = hand
            frequency[hand] >>= 1
            hand += 1
            if hand == len(frequency):
                hand = 0
        victims[i] = least
    return hand
