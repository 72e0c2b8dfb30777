"""How the stream asks for the rows of R: Zipf's law, as the papers' generator draws it (HYBRIDJOIN 2011, appendix)."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Skew"]

_NEAR_ONE = 1e-9


@dataclass(frozen=True)
class Skew:
    """Rank 1 is asked for most often; rank x has the area under t^-e from x to x + 1.

    Attributes:
        rows: the rows of R.
        exponent: e; 0 is uniform, 1 is the papers' 80/20.
    """

    rows: int
    exponent: float

    def __post_init__(self) -> None:
        if self.rows < 1 or self.exponent < 0:
            raise ValueError(
                f"rows must be at least 1 and exponent at least 0, got {self.rows} and {self.exponent}: correct them"
            )

    def head(self, ranks: np.ndarray) -> np.ndarray:
        """Return the share of the stream that asks for the first ranks: 0 for none, 1 for all rows.

        For e = 1 it is ln(ranks + 1) / ln(rows + 1): p_N of Optimised X-HYBRIDJOIN 2012, equation 4, for any number of
        rows.
        """
        areas = self._area(np.append(ranks, self.rows).astype(np.float64))
        shares: np.ndarray = areas[:-1] / areas[-1]
        return shares

    def shares(self, first: int, count: int) -> np.ndarray:
        """Return the share of each of `count` ranks from `first` on; the first rank is 0."""
        return np.diff(self.head(np.arange(first, first + count + 1, dtype=np.float64)))

    def _area(self, ranks: np.ndarray) -> np.ndarray:
        """Return the integral of t^-e from 1 to ranks + 1."""
        logarithms: np.ndarray = np.log1p(ranks)
        rest = 1 - self.exponent
        if abs(rest) < _NEAR_ONE:
            return logarithms
        areas: np.ndarray = np.expm1(rest * logarithms) / rest
        return areas
