"""R in no order, computed page by page, is a relation like any other: every key once, found where its page is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from semistream import HybridJoin
from semistream.planning import Workload

from benchmarks.shuffled_relation import ShuffledRelation
from tests.naive import equal_keys, multiset, nested_loop_join

STREAM = pa.schema([pa.field("key", pa.int64(), nullable=False)])


def shuffled(rows: int, page_rows: int) -> ShuffledRelation:
    """Return R with the columns of the papers' data."""
    return ShuffledRelation(Workload.of_the_papers(rows, order="none"), page_rows)


@example(1, 1)
@example(1024, 100)  # all numbers of ten bits
@example(1025, 100)
@given(rows=st.integers(1, 5000), page_rows=st.integers(1, 500))
def test_each_key_is_once_in_r_and_the_index_names_its_page(rows: int, page_rows: int) -> None:
    """All pages together have each key once; the index names the page of each, and no page for a key that R lacks."""
    r = shuffled(rows, page_rows)
    pages = [r.read_page(page) for page in range(r.pages)]
    keys = np.concatenate([page.keys for page in pages])
    assert sorted(keys.tolist()) == list(range(rows))
    assert r.locate(keys).tolist() == [number for number, page in enumerate(pages) for _ in page.keys]
    assert r.locate(np.array([-1, rows, 2**62])).tolist() == [-1, -1, -1]
    assert r.candidates(int(keys[-1])) == [r.pages - 1]
    assert r.candidates(rows) == []
    assert r.counters.bytes_read == 120 * rows


def test_frequent_rows_lie_on_pages_by_chance() -> None:
    """The first 200,000 keys of 10 million fall on 2,500 pages as dice would: mean 80 a page, variance 80 or so."""
    r = shuffled(10_000_000, 4000)
    counts = np.bincount(r.locate(np.arange(200_000)), minlength=r.pages)
    assert counts.mean() == 80
    assert counts.var() == pytest.approx(80, rel=0.15)  # five standard deviations of a variance of 2,500 draws


def test_a_join_with_it_is_the_nested_loop() -> None:
    """HYBRIDJOIN over computed pages outputs what the nested loop over all their rows outputs."""
    r = shuffled(300, 20)
    table = pa.Table.from_batches([r.read_page(page).rows for page in range(r.pages)])
    tuples = pa.table({"key": np.random.default_rng(3).integers(-50, 400, 500)}, schema=STREAM)
    join = HybridJoin(r, STREAM, "key", 100_000, how="left", columns=["column_0", "column_5"])
    out = [*join.feed(tuples.combine_chunks().to_batches()[0]), *join.finish()]
    expected = nested_loop_join(tuples, table, equal_keys(["key"], ["id"]), ["column_0", "column_5"], outer=True)
    assert multiset(out) == expected
