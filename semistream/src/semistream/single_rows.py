"""Decides which rows of R a join reads one by one, instead of whole pages.

A page is worth its reading if it serves many waiting tuples. When R is far larger than memory, few tuples wait for each
page. Then nearly all of a page's rows are looked up in H_S in vain.
"""

import math

import numpy as np

__all__ = ["SingleRows"]

_FADING = 1 / 8  # the weight of the newest page in the average


class SingleRows:
    """Knows how many tuples a page serves at the moment.

    Args:
        below: read the rows of pages that serve fewer tuples one by one; 0 to read whole pages only.
    """

    def __init__(self, below: float) -> None:
        self._below = below
        self._served = math.inf

    @property
    def pay(self) -> bool:
        """Whether the next rows should be read one by one."""
        return self._served < self._below

    def note_page(self, served: int) -> None:
        """Note how many tuples a page served."""
        if math.isinf(self._served):
            self._served = served
        self._served += (served - self._served) * _FADING

    def pages_worth_reading(self, wanted: np.ndarray, waiting: int) -> np.ndarray:
        """Return the pages that serve enough tuples to be read whole.

        Args:
            wanted: for each of the oldest tuples the page of its row.
            waiting: how many tuples wait. The younger ones are taken to want the same pages as often. A page that one
                of the oldest tuples wants says nothing about them.
        """
        pages, counts = np.unique(wanted, return_counts=True)
        served = 1 + (counts - 1) * (waiting / len(wanted))
        self._served = float(served.mean())
        return pages[served >= self._below]
