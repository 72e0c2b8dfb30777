"""R grows between two calls of a join: a stream tuple meets all rows that R had when the join read the tuple."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.joins import CMeshJoin, HybridJoin, IndexNestedLoopJoin, MeshJoin, SemiStreamJoin
from semistream.memory_split import Shares
from semistream.relation import GrowingRelation

from tests.semistream import cases

MEMORY = 40_000
SHARES = Shares(front_stage=0.4)
MANY_TO_MANY = [join for join in cases.JOINS if not join.unique_key]
KINDS = ["int64", "string"]
# Portions of R and of S; after each portion of S the next one of R is appended.
unique_rows = st.permutations(range(30)).flatmap(
    lambda keys: st.lists(st.integers(0, 30), min_size=3, max_size=3).map(
        lambda cuts: [keys[a:b] for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), 30], strict=True)]
    )
)
repeated_rows = st.lists(st.lists(st.integers(0, 8), max_size=25), min_size=4, max_size=4)
tuples = st.lists(st.lists(st.one_of(st.none(), st.integers(0, 32)), max_size=80), min_size=4, max_size=4)


def _check(algorithm: type[SemiStreamJoin], rows: list[Any], portions: list[list[Any]], page_rows: int) -> None:
    """Join while R grows, and compare each tuple's rows with those before and those after it."""
    kind = KINDS[page_rows % 2]
    relation = GrowingRelation(cases.master(kind, rows[0]), ["id_a"], sum(map(len, rows)), page_rows, string_bytes=100)
    join = algorithm(relation, cases.stream(kind, []).schema, "a", MEMORY, how="left", output="pairs", shares=SHARES)
    keys, known = [key for portion in portions for key in portion], list(rows[0])
    had: list[int] = []  # rows of R when each tuple was read
    pairs: Counter[tuple[int, int]] = Counter()

    def note(out: list[Any]) -> None:
        for numbers, positions in out:
            pairs.update(zip(numbers.tolist(), positions.tolist(), strict=True))

    for number, portion in enumerate(portions):
        for batch in cases.stream(kind, portion).to_batches(max_chunksize=17):
            note(join.feed(batch))
        had += [len(known)] * len(portion)
        if number + 1 < len(rows):
            relation.append(cases.master(kind, rows[number + 1]))
            known += rows[number + 1]
    note(join.finish())

    assert set(pairs.values()) <= {1}
    met: dict[int, set[int]] = {number: set() for number in range(len(keys))}
    for number, position in pairs:
        met[number].add(position)
    for number, key in enumerate(keys):
        all_rows = {position for position, of in enumerate(known) if of == key}
        must = {position for position in all_rows if position < had[number]}
        assert met[number] == {-1} if not met[number] & all_rows else must <= met[number] <= all_rows
        assert not must or -1 not in met[number]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(rows=unique_rows, portions=tuples, page_rows=st.integers(1, 9))
@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_every_join_while_r_grows(
    algorithm: type[SemiStreamJoin], rows: list[Any], portions: list[list[Any]], page_rows: int
) -> None:
    """A tuple comes out with the row that R had when it was read; one that came later may match it, too."""
    _check(algorithm, rows, portions, page_rows)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(rows=repeated_rows, portions=tuples, page_rows=st.integers(1, 9))
@pytest.mark.parametrize("algorithm", MANY_TO_MANY)
def test_while_r_grows_by_rows_of_keys_that_it_has(
    algorithm: type[SemiStreamJoin], rows: list[Any], portions: list[list[Any]], page_rows: int
) -> None:
    """A tuple meets each row that R had when it was read, once, and perhaps later ones."""
    _check(algorithm, [[0, 0, *rows[0]], *rows[1:]], portions, page_rows)


def test_a_cached_key_gets_its_new_rows() -> None:
    """A key that the front stage has in full gets another row; the next tuple meets it."""
    relation = GrowingRelation(cases.master("int64", [7, 7, 8, 9]), ["id_a"], 100, page_rows=2)
    one = cases.stream("int64", [7]).to_batches()[0]
    join = CMeshJoin(relation, one.schema, "a", MEMORY, shares=SHARES)
    while not join.front_stage.hits:
        join.offer(one)
        join.step()
    join.finish()
    relation.append(cases.master("int64", [1, 2, 3, 7]))
    assert sum(batch.num_rows for batch in join.feed(one) + join.finish()) == 3


@pytest.mark.parametrize("algorithm", [MeshJoin, HybridJoin, IndexNestedLoopJoin])
def test_a_waiting_tuple_can_meet_rows_that_came_later(algorithm: type[SemiStreamJoin]) -> None:
    """A tuple whose page has not been read when its row is appended matches it."""
    relation = GrowingRelation(cases.master("int64", [1, 2]), ["id_a"], 10, page_rows=2)
    one = cases.stream("int64", [5]).to_batches()[0]
    join = algorithm(relation, one.schema, "a", MEMORY)
    assert join.feed(one) == []
    relation.append(cases.master("int64", [3, 4, 5]))
    assert sum(batch.num_rows for batch in join.finish()) == 1


@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_memory_stays_when_r_grows(algorithm: type[SemiStreamJoin]) -> None:
    """A join reserves at once what the pages of the largest R need."""
    relation = GrowingRelation(cases.master("string", [0]), ["id_a"], 90, page_rows=1, string_bytes=100)
    join = algorithm(relation, cases.stream("string", []).schema, "a", 3 * MEMORY, shares=Shares(string_bytes=90))
    used, page = join.memory_used(), join.disk_buffer.nbytes
    for key in range(1, 90):
        relation.append(cases.master("string", [key]))
        join.feed(cases.stream("string", [key, key - 1]).to_batches()[0])
    join.finish()
    assert relation.pages == 90
    assert join.memory_used() == used <= 3 * MEMORY
    assert join.disk_buffer.size(relation) == page


def test_what_cannot_be_appended_is_an_error_and_changes_nothing() -> None:
    """Too many rows, other columns, a key again, longer strings than a page has room for."""
    relation = GrowingRelation(cases.master("string", [1, 2]), ["id_a"], 4, page_rows=2)
    for rows, message in (
        (cases.master("string", [3, 4, 5]), "at most most_rows, 4, got 5: make the relation again"),
        (cases.master("int64", [3]), "rows must have the relation's schema"),
        (cases.master("string", [2]), r"rows must have keys that R lacks, because its key \['id_a'\] is unique"),
        (cases.master("string", [3]).set_column(1, "name", pa.array(["x" * 1000])), "a page must fit into .* bytes"),
    ):
        with pytest.raises(ValueError, match=message):
            relation.append(rows)
        assert (relation.row_count, relation.pages, relation.version) == (2, 1, 0)
        assert relation.read_page(0).rows.num_rows == 2
    with pytest.raises(ValueError, match="at most most_rows, 1, got 2"):
        GrowingRelation(cases.master("string", [1, 2]), ["id_a"], 1)
