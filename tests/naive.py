"""Slow reference implementations that are simple enough to trust."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

Multiset = Counter[tuple[Any, ...]]


def nested_loop_join(
    stream: pa.Table,
    master: pa.Table,
    matches: Callable[[dict[str, Any], dict[str, Any]], bool],
    columns: Sequence[str],
    *,
    outer: bool,
) -> Multiset:
    """Join every stream row with every master row, as a multiset; an unmatched row joins nulls in an outer join."""
    joined: Multiset = Counter()
    master_rows = master.to_pylist()
    for s in stream.to_pylist():
        found = [r for r in master_rows if matches(s, r)]
        for r in found:
            joined[(*s.values(), *(r[c] for c in columns))] += 1
        if outer and not found:
            joined[(*s.values(), *(None for _ in columns))] += 1
    return joined


def equal_keys(on: Sequence[str], key: Sequence[str]) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    """Return the condition of an equi-join; null equals nothing."""
    return lambda s, r: all(s[a] is not None and s[a] == r[b] for a, b in zip(on, key, strict=True))


def multiset(batches: Iterable[pa.RecordBatch]) -> Multiset:
    """Count the rows of batches."""
    return Counter(tuple(row.values()) for batch in batches for row in batch.to_pylist())
