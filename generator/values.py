"""The values of event n: product, quantity, store, and its fault if it is malformed.

All are a pure function of the settings and n: SplitMix64 has random access, so processes can share the events of one
stream, and a batch can begin at any event. The kernels share one file because numba's cache ignores changes in called
files.

Zipf's law is drawn as in HYBRIDJOIN 2011, appendix, figure 9, GETDISTRIBUTIONVALUE (the inverse of the integral), or
exactly, by rejection inversion (Hörmann and Derflinger, 1996).
"""

from math import exp, expm1, log, log1p
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from generator.settings import StreamSettings

Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
UInt8s = NDArray[np.uint8]

STORES = 100
MAX_QUANTITY = 10
MALFORMED_KINDS = 9  # the faults in encode.MALFORMED

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_U0, _U1 = np.uint64(0), np.uint64(1)
_U11, _U27, _U30, _U31, _U32 = (np.uint64(shift) for shift in (11, 27, 30, 31, 32))
_ROUNDS = 4
_NEVER = 2**62

# Each event has 8 random numbers (draws). These are the indices of the draws in use.
_DRAWS = np.uint64(8)
_RANK, _DETAIL, _FAULT, _FAULT_KIND, _ABSENT, _CROSSOVER = (np.uint64(draw) for draw in range(6))


class Recipe(NamedTuple):
    """The settings that determine values, as the kernels' argument."""

    seed: np.uint64
    keys: int
    exponent: float
    discrete: bool
    gradual: bool
    drift_every: int
    windows: int
    absent: float
    malformed: float


def recipe(settings: StreamSettings) -> Recipe:
    """Convert settings to the kernels' argument."""
    return Recipe(
        seed=np.uint64(settings.seed),
        keys=settings.keys,
        exponent=float(settings.exponent),
        discrete=settings.law == "discrete",
        gradual=settings.drift == "gradual",
        drift_every=settings.drift_every or _NEVER,
        windows=settings.windows if settings.drift == "windows" else 1,
        absent=float(settings.absent),
        malformed=float(settings.malformed),
    )


@njit(cache=True)
def _mix(x: np.uint64) -> np.uint64:
    """Apply SplitMix64's output function."""
    x = (x ^ (x >> _U30)) * _MIX_1
    x = (x ^ (x >> _U27)) * _MIX_2
    return x ^ (x >> _U31)


@njit(cache=True)
def _unit(bits: np.uint64) -> float:
    """Return a double in [0, 1) from 64 random bits."""
    return (bits >> _U11) * 2.0**-53


@njit(cache=True)
def _integral(x: float, e: float) -> float:
    """Return the integral of t^-e from 1 to x: the logarithm for e = 1, and without cancellation for e near 1."""
    if e == 1.0:
        return log(x)
    return expm1((1.0 - e) * log(x)) / (1.0 - e)


@njit(cache=True)
def _inverse(area: float, e: float) -> float:
    """Return the x at which the integral of t^-e from 1 to x is `area`."""
    if e == 1.0:
        return exp(area)
    if e == 0.0:
        return 1.0 + area
    return exp(log1p(max(area * (1.0 - e), -1.0)) / (1.0 - e))


@njit(cache=True)
def _clip(rank: int, keys: int) -> int:
    return min(max(rank, 1), keys)


@njit(cache=True)
def _integral_rank(bits: np.uint64, keys: int, e: float, total: float) -> int:
    """Draw a rank (figure 9, lines 28 to 31, x-min = 1, x-max = keys + 1): rank k has the area from k to k + 1."""
    return _clip(int(_inverse(_unit(bits) * total, e)), keys)


@njit(cache=True)
def _discrete_rank(bits: np.uint64, keys: int, e: float) -> int:
    """Draw a rank whose probability is exactly proportional to rank^-e, by rejection inversion."""
    low = _integral(1.5, e) - 1.0
    high = _integral(keys + 0.5, e)
    surely = 2.0 - _inverse(_integral(2.5, e) - 2.0**-e, e)
    while True:
        area = high + _unit(bits) * (low - high)
        x = _inverse(area, e)
        rank = _clip(int(x + 0.5), keys)
        if rank - x <= surely or area >= _integral(rank + 0.5, e) - float(rank) ** -e:
            return rank
        bits = _mix(bits + _GOLDEN)


@njit(cache=True)
def _choose_permutation(seed: np.uint64, version: int, constants: UInt64s) -> None:
    """Derive the constants of permutation number `version`; the multipliers are odd, hence invertible."""
    state = _mix(seed ^ _GOLDEN) + np.uint64(version) * np.uint64(2 * _ROUNDS) * _GOLDEN
    for i in range(2 * _ROUNDS):
        state += _GOLDEN
        constants[i] = _mix(state) | (_U1 if i % 2 else _U0)


@njit(cache=True)
def _permute(index: int, size: int, constants: UInt64s) -> int:
    """Return the image of `index` under a permutation of 0..size-1, without a table.

    Adding, multiplying by an odd number and folding high bits onto low ones are bijections of the smallest power of
    two that holds `size`. An image outside of `size` is mapped again until it is inside (cycle walking): at most two
    rounds on average.
    """
    bits = 0
    while (1 << bits) < size:
        bits += 1
    if bits == 0:
        return 0
    mask = np.uint64((1 << bits) - 1)
    fold = np.uint64((bits + 1) // 2)
    x = np.uint64(index)
    while True:
        for i in range(0, 2 * _ROUNDS, 2):
            x = ((x + constants[i]) * constants[i + 1]) & mask
            x ^= x >> fold
        if x < np.uint64(size):
            return int(x)


@njit(cache=True, nogil=True)
def fill_values(
    plan: Recipe, numbers: Int64s, products: Int64s, quantities: Int64s, stores: Int64s, faults: UInt8s
) -> None:
    """Fill the columns for the events with these numbers, which must ascend."""
    seed = _mix(plan.seed + _GOLDEN)
    now, after = np.empty(2 * _ROUNDS, np.uint64), np.empty(2 * _ROUNDS, np.uint64)
    interval, low, size, total = -1, 0, 1, 0.0
    for i in range(len(numbers)):
        number = numbers[i]
        if number // plan.drift_every != interval:
            interval = number // plan.drift_every
            window = interval % plan.windows
            low = window * plan.keys // plan.windows
            size = (window + 1) * plan.keys // plan.windows - low
            total = _integral(size + 1.0, plan.exponent)
            _choose_permutation(seed, interval, now)
            _choose_permutation(seed, interval + 1, after)
        draws = seed + np.uint64(number) * _DRAWS * _GOLDEN

        rank_bits = _mix(draws + _RANK * _GOLDEN)
        if plan.discrete:
            rank = _discrete_rank(rank_bits, size, plan.exponent)
        else:
            rank = _integral_rank(rank_bits, size, plan.exponent, total)
        permutation = now
        if plan.gradual:
            passed = (number % plan.drift_every) / plan.drift_every
            if _unit(_mix(draws + _CROSSOVER * _GOLDEN)) < passed:
                permutation = after
        product = 1 + low + _permute(rank - 1, size, permutation)
        if plan.absent > 0 and _unit(_mix(draws + _ABSENT * _GOLDEN)) < plan.absent:
            product += plan.keys
        products[i] = product

        detail = _mix(draws + _DETAIL * _GOLDEN)
        quantities[i] = 1 + np.int64((detail >> _U32) % np.uint64(MAX_QUANTITY))
        stores[i] = 1 + np.int64((detail & np.uint64(0xFFFFFFFF)) % np.uint64(STORES))
        faults[i] = 0
        if plan.malformed > 0 and _unit(_mix(draws + _FAULT * _GOLDEN)) < plan.malformed:
            faults[i] = 1 + _mix(draws + _FAULT_KIND * _GOLDEN) % np.uint64(MALFORMED_KINDS)


@njit(cache=True, nogil=True)
def _fill_ranks(plan: Recipe, ranks: Int64s) -> None:
    seed = _mix(plan.seed + _GOLDEN)
    total = _integral(plan.keys + 1.0, plan.exponent)
    for i in range(len(ranks)):
        bits = _mix(seed + np.uint64(i) * _DRAWS * _GOLDEN + _RANK * _GOLDEN)
        if plan.discrete:
            ranks[i] = _discrete_rank(bits, plan.keys, plan.exponent)
        else:
            ranks[i] = _integral_rank(bits, plan.keys, plan.exponent, total)


@njit(cache=True, nogil=True)
def _fill_keys(plan: Recipe, version: int, ranks: Int64s, products: Int64s) -> None:
    constants = np.empty(2 * _ROUNDS, np.uint64)
    _choose_permutation(_mix(plan.seed + _GOLDEN), version, constants)
    for i in range(len(ranks)):
        products[i] = 1 + _permute(ranks[i] - 1, plan.keys, constants)


def draw_ranks(settings: StreamSettings, count: int) -> Int64s:
    """Draw the ranks of the first `count` events; rank 1 is the most frequent."""
    ranks = np.empty(count, np.int64)
    _fill_ranks(recipe(settings), ranks)
    return ranks


def keys_of_ranks(settings: StreamSettings, ranks: Int64s, interval: int = 0) -> Int64s:
    """Return the product ids of these ranks in a drift interval, over the whole key space (not for drift "windows")."""
    products = np.empty(len(ranks), np.int64)
    _fill_keys(recipe(settings), interval, ranks, products)
    return products
