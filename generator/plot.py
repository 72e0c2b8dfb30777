"""Figures 10 and 11 of HYBRIDJOIN 2011 for this generator, as PNG files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from generator.arrivals import STEP_SECONDS, counts_per_step
from generator.hurst import by_aggregated_variance, by_rescaled_range
from generator.settings import SettingError, StreamSettings
from generator.values import draw_ranks

MAX_KEYS = 10_000_000  # every key has a counter
_EVENTS = 5_000_000
_POINTS = 1_000
_SCALES = (1, 10, 100)  # steps in one point of each panel
_HURST_SCALES = (10, 1_000)
_BLUE, _GREY, _RED = "#1f5fa8", "#b0b0b0", "#c03020"

Floats = NDArray[np.float64]


def check_plot(settings: StreamSettings) -> None:
    """Raise SettingError for a stream that cannot be drawn."""
    if settings.keys > MAX_KEYS:
        raise SettingError(f"keys: must be 1 to {MAX_KEYS} in a picture, got {settings.keys}; draw fewer")
    if settings.rate is None or settings.rate < 1:
        raise SettingError(f"rate: must be 1 event/s or more in a picture, got {settings.rate}; draw a faster stream")
    if not _counts(settings).any():
        raise SettingError(
            f"burstiness: must leave some of the {_POINTS * max(_SCALES) * STEP_SECONDS:g} seconds of a picture with"
            f" events, got {settings.burstiness} with {settings.sources} sources; lower one of them"
        )


def fitted_exponent(frequency: Floats) -> float:
    """Estimate Zipf's exponent from the frequencies of ranks 1, 2, ... by the slope over bins of doubling width."""
    edges = 2 ** np.arange(2, int(np.log2(len(frequency) + 1)) + 1)  # leave out the first ranks: there the laws differ
    means = np.add.reduceat(frequency, edges - 1)[:-1] / np.diff(edges)
    middles = np.sqrt(edges[:-1] * edges[1:])
    seen = means > 0
    return float(-np.polyfit(np.log(middles[seen]), np.log(means[seen]), 1)[0])


def plot_skew(settings: StreamSettings, path: Path) -> None:
    """Draw figure 10: sales by product, the most sold first, on linear and on logarithmic scales."""
    frequency = np.bincount(draw_ranks(settings, _EVENTS), minlength=settings.keys + 1)[1:].astype(np.float64)
    ranks = np.arange(1, settings.keys + 1)
    top = frequency[: max(settings.keys // 5, 1)].sum() / _EVENTS
    shown = np.unique(np.geomspace(1, settings.keys, 2_000).astype(np.int64)) - 1
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    plain, logarithmic = figure.subplots(1, 2)
    plain.plot(ranks[shown], frequency[shown], color=_BLUE)
    plain.set(title=f"a fifth of the products: {top:.0%} of the sales", ylim=(0, frequency[min(20, settings.keys - 1)]))
    logarithmic.loglog(ranks[shown], frequency[shown], ".", markersize=2, color=_BLUE)
    if settings.keys > 8:  # noqa: PLR2004 - fewer bins have no slope
        slope = fitted_exponent(frequency)
        line = frequency[7] * (ranks[shown] / 8.0) ** -slope
        logarithmic.plot(ranks[shown], line, color=_RED, label=f"fitted exponent {slope:.3f}")
        logarithmic.legend()
    logarithmic.set(title=f"asked for: exponent {settings.exponent:g}")
    for axes in (plain, logarithmic):
        axes.set(xlabel="product, by rank", ylabel=f"sales of {_EVENTS / 1e6:g} million")
    figure.savefig(path, dpi=80)


def plot_bursts(settings: StreamSettings, path: Path) -> None:
    """Draw figure 11: the rate over time at several scales, beside a Poisson stream of the same mean."""
    bursty = _counts(settings)
    poisson = _counts(replace(settings, burstiness=1.0))
    variance, rescaled = (estimate(bursty, *_HURST_SCALES) for estimate in (by_aggregated_variance, by_rescaled_range))
    figure = Figure(figsize=(9, 5), layout="constrained")
    figure.suptitle(f"Hurst parameter: {variance:.2f} by aggregated variance, {rescaled:.2f} by R/S (Poisson: 0.5)")
    for axes, scale in zip(figure.subplots(len(_SCALES), 1), _SCALES, strict=True):
        seconds = scale * STEP_SECONDS
        time = np.arange(_POINTS) * seconds
        for counts, colour, label in ((poisson, _GREY, "Poisson"), (bursty, _BLUE, "generator")):
            rates = counts[: _POINTS * scale].reshape(_POINTS, scale).sum(axis=1) / seconds
            axes.plot(time, rates, color=colour, linewidth=0.8, label=label)
        axes.set(xlim=(0, time[-1]), ylim=(0, None), xlabel=f"seconds, {seconds:g} s a point", ylabel="events/s")
    figure.axes[0].legend(loc="upper right")
    figure.savefig(path, dpi=80)


def _counts(settings: StreamSettings) -> Floats:
    steps = _POINTS * max(_SCALES)
    return next(counts_per_step(settings, steps)).astype(np.float64)
