"""Relations, streams and joins for the tests of this folder."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from semistream.joins import BY_NAME

from tests.naive import Multiset, equal_keys, nested_loop_join

JOINS = list(BY_NAME.values())
KEY_KINDS = ["int32", "int64", "string", "two columns"]
DOMAIN = 90  # keys below it may be in the stream
MASTER_ROWS = 60  # keys of R: a random choice of the domain
MEMORY = 16_000


def key_columns(kind: str, numbers: Sequence[int | None]) -> dict[str, pa.Array]:
    """Make key columns of some kind from numbers; None becomes a null key."""
    if kind == "two columns":
        return {
            "a": pa.array([None if n is None else n // 7 for n in numbers], pa.int32()),
            "b": pa.array([None if n is None else f"b{n % 7}" for n in numbers], pa.string()),
        }
    if kind == "string":
        return {"a": pa.array([None if n is None else "k" * (n % 40) + str(n) for n in numbers], pa.string())}
    return {"a": pa.array(numbers, pa.int32() if kind == "int32" else pa.int64())}


def master(kind: str, numbers: Sequence[int]) -> pa.Table:
    """Build R with columns of fixed and of variable width, some of them null; key columns are id_a, id_b."""
    keys = {f"id_{name}": column for name, column in key_columns(kind, numbers).items()}
    names = [None if n % 11 == 0 else "name " * (n % 13) + str(n) for n in numbers]
    prices = [None if n % 5 == 0 else n * 0.5 for n in numbers]
    return pa.table(
        {
            **keys,
            "name": pa.array(names, pa.string()),
            "price": pa.array(prices, pa.float64()),
            "new": pa.array([n % 2 == 0 for n in numbers], pa.bool_()),
        }
    )


def stream(kind: str, numbers: Sequence[int | None]) -> pa.Table:
    """Build S; `n` tells tuples apart."""
    count = len(numbers)
    notes = pa.array([None if n % 3 == 0 else "note " * (n % 9) for n in range(count)], pa.string())
    return pa.table({**key_columns(kind, numbers), "n": pa.array(range(count), pa.int64()), "note": notes})


COLUMNS = ["name", "price", "new"]


def master_numbers() -> list[int]:
    """Choose the keys of R."""
    numbers: list[int] = np.random.default_rng(7).permutation(DOMAIN)[:MASTER_ROWS].tolist()
    return numbers


def _skewed(rng: np.random.Generator, size: int) -> list[int]:
    ranks = np.minimum(np.power(DOMAIN + 1.0, rng.random(size)).astype(int) - 1, DOMAIN - 1)
    keys: list[int] = rng.permutation(DOMAIN)[ranks].tolist()
    return keys


SHAPES: dict[str, Callable[[np.random.Generator], list[Any]]] = {
    "empty": lambda _: [],
    "one tuple": lambda _: [master_numbers()[0]],
    "uniform": lambda rng: rng.integers(0, DOMAIN, 300).tolist(),
    "skewed": lambda rng: _skewed(rng, 400),
    "one key for all": lambda _: [master_numbers()[1]] * 300,
    "all absent": lambda rng: (DOMAIN + rng.integers(0, 50, 300)).tolist(),
    "null keys": lambda rng: [None if rng.random() < 0.3 else k for k in _skewed(rng, 300)],
}


@functools.cache
def expected(kind: str, shape: str, seed: int, how: str) -> Multiset:
    """Return the oracle's rows; they are the same for all joins."""
    table, tuples = master(kind, master_numbers()), stream(kind, SHAPES[shape](np.random.default_rng(seed)))
    key = [name for name in table.column_names if name.startswith("id_")]
    on = [name.removeprefix("id_") for name in key]
    return nested_loop_join(tuples, table, equal_keys(on, key), COLUMNS, outer=how == "left")
