"""How often each cached tuple is asked for, and the threshold that moves (003 section 3.2.1).

The papers overwrite the least frequent tuple. Searching all for it is dear, so the hand of a clock looks at `_SWEEP`
tuples, takes the least frequent of them, and halves the counts it has passed: what was frequent long ago fades.
"""

import numpy as np

from semistream.kernel import kernel

_SWEEP = 8


class FrequencyRecorder:
    """Frequencies of cached tuples and the least frequency that lets another tuple in.

    Attributes:
        frequency: times each slot was hit, fading.
        threshold: falls while the cache has room, rises when tuples are overwritten too often, falls again in calm.
    """

    def __init__(self, slots: int) -> None:
        self.frequency = np.zeros(slots, dtype=np.int32)
        self.threshold = 2
        self._window = 8 * slots
        self._seen = 0
        self._overwritten = 0
        self._hand = 0

    @staticmethod
    def bytes_per_slot() -> int:
        """Say what a cached tuple costs."""
        return 4

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.frequency.nbytes

    def victims(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choose slots to overwrite by tuples that occurred `f` times, at most one in `_SWEEP` of all at a time.

        Gives which of the tuples get one, and their slots: a tuple does not overwrite one that is more frequent.
        """
        slots = len(self.frequency)
        sweep = min(_SWEEP, slots)
        least = np.empty(min(len(f), slots // sweep), dtype=np.int64)
        self._hand = int(_sweep(least, sweep, self._hand, self.frequency))
        chosen = np.flatnonzero(f[: len(least)] >= self.frequency[least])
        self._overwritten += len(chosen)
        return chosen, least[chosen]

    def adapt(self, tuples: int, *, room: bool) -> None:
        """Move the threshold after `tuples` more stream tuples have been looked up."""
        if room:
            self.threshold = max(1, self.threshold - 1)
            return
        self._seen += tuples
        if self._seen >= self._window:
            if self._overwritten > len(self.frequency) // 64:
                self.threshold += 1
            elif self._overwritten <= len(self.frequency) // 256:
                self.threshold = max(1, self.threshold - 1)
            self._seen = 0
            self._overwritten = 0


@kernel
def _sweep(chosen: np.ndarray, sweep: int, hand: int, frequency: np.ndarray) -> int:
    for i in range(len(chosen)):
        least = hand
        for _ in range(sweep):
            if frequency[hand] < frequency[least]:
                least = hand
            frequency[hand] >>= 1
            hand += 1
            if hand == len(frequency):
                hand = 0
        chosen[i] = least
    return hand
