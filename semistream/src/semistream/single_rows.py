"""Decides which rows of R a join reads one by one, instead of whole partitions.

A partition is worth its reading if it serves many waiting tuples. When R is far larger than memory, few tuples wait for
each. Then nearly all rows of a partition are looked up in H_S in vain.
"""

import math

import numpy as np

__all__ = ["SingleRows"]

_FADING = 1 / 8  # the weight of the newest partition in the average


class SingleRows:
    """Knows how many tuples a partition serves at the moment.

    Args:
        below: read the rows of partitions that serve fewer tuples one by one; 0 to read whole partitions only.
    """

    def __init__(self, below: float) -> None:
        if not below >= 0:
            raise ValueError(
                f"single_rows_below must be a number of at least 0, got {below}: use 0 for whole partitions"
            )
        self.below = below
        self._served = math.inf

    def pay(self, waiting: int) -> bool:
        """Return whether the next rows should be read one by one, while so many tuples wait."""
        return min(self._served, waiting) < self.below

    def note(self, served: int) -> None:
        """Note how many tuples a partition served."""
        if math.isinf(self._served):
            self._served = served
        self._served += (served - self._served) * _FADING

    def worth_reading(self, wanted: np.ndarray, times: float) -> np.ndarray:
        """Return the partitions that serve enough tuples to be read whole.

        Args:
            wanted: for each key of the oldest tuples the partition of its row.
            times: how many times as many tuples wait. The younger ones are taken to want the same partitions as often.
                One that a single key wants says nothing about them.
        """
        partitions, counts = np.unique(wanted, return_counts=True)
        served = 1 + (counts - 1) * times
        self._served = float(served.mean())
        return partitions[served >= self.below]
