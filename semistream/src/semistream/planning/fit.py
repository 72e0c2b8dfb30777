"""Find the exponent of Zipf's law that fits what was counted."""

import numpy as np
from semistream.planning.skew import Skew

__all__ = ["fit_exponent"]

_MOST, _STEPS = 4.0, 40


def fit_exponent(shares: np.ndarray, rows: int) -> float:
    """Return the exponent with which the most frequent tenth of the counted keys has its counted share.

    Args:
        shares: the share of the stream of each counted key, the most frequent first; their sum is at most 1.
        rows: the rows of R.
    """
    head = max(1, len(shares) // 10)
    counted = float(shares[:head].sum())
    low, high = 0.0, _MOST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if float(Skew(rows, middle).head(np.array([head]))[0]) < counted:
            low = middle
        else:
            high = middle
    return low
