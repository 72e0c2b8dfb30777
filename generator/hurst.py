"""Estimate the Hurst parameter of a series, a measure of self-similarity, by two methods.

A series without memory, such as Poisson counts, has 0.5; near 1 bursts look the same at every scale. The methods are
those of Leland, Taqqu, Willinger and Wilson, "On the self-similar nature of Ethernet traffic" (1994), section 3.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SIZES = 20


def _slope(sizes: Floats, values: Floats) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _blocks(series: Floats, size: int) -> Floats:
    return series[: len(series) // size * size].reshape(-1, size)


def _sizes(smallest: int, largest: int) -> NDArray[np.int64]:
    return np.unique(np.geomspace(smallest, largest, _SIZES).astype(np.int64))


def by_aggregated_variance(series: Floats, smallest: int, largest: int) -> float:
    """Estimate H from the variance of the means of blocks of size m, which falls as m^(2H-2)."""
    sizes = _sizes(smallest, largest)
    variances = np.array([_blocks(series, size).mean(axis=1).var() for size in sizes])
    return 1.0 + _slope(sizes.astype(np.float64), variances) / 2.0


def by_rescaled_range(series: Floats, smallest: int, largest: int) -> float:
    """Estimate H from R/S: a block's range of summed deviations over its standard deviation grows as m^H."""
    sizes = _sizes(smallest, largest)
    ratios = []
    for size in sizes:
        blocks = _blocks(series, size)
        walks = np.cumsum(blocks - blocks.mean(axis=1, keepdims=True), axis=1)
        spread = blocks.std(axis=1)
        varied = spread > 0
        ratios.append(((walks.max(axis=1) - walks.min(axis=1))[varied] / spread[varied]).mean())
    return _slope(sizes.astype(np.float64), np.array(ratios))
