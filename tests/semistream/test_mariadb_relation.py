"""A table in MariaDB is a relation like any other."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pymysql
import pytest
from semistream.joins import CachedIndexNestedLoopJoin, CHybridJoin, SemiStreamJoin
from semistream.relation.mariadb import MariaDbRelation

from tests.naive import equal_keys, multiset, nested_loop_join
from tests.semistream import cases

pytestmark = pytest.mark.integration

PAGE_ROWS = 8
SCHEMA = cases.master("int64", []).schema
MEMORY = 40_000
Connect = Callable[[], Any]


@pytest.fixture
def connections(mariadb: Connect) -> Iterator[list[Any]]:
    """Create the table; the list collects the connections that a relation opens."""
    table = cases.master("int64", cases.master_numbers())
    with mariadb() as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS product")
        cursor.execute(
            "CREATE TABLE product (id_a BIGINT PRIMARY KEY, name TEXT, price DOUBLE, new BOOLEAN) CHARACTER SET utf8mb4"
        )
        rows = [tuple(row.values()) for row in table.to_pylist()]
        cursor.executemany("INSERT INTO product (id_a, name, price, new) VALUES (%s, %s, %s, %s)", rows)
        connection.commit()
    opened: list[Any] = []
    yield opened
    for connection in opened:
        if connection.open:
            connection.close()


def _open(mariadb: Connect, connections: list[Any], **options: Any) -> MariaDbRelation:  # noqa: ANN401 - any parameter
    def connect() -> Any:  # noqa: ANN401 - as above
        connections.append(mariadb())
        return connections[-1]

    return MariaDbRelation(connect, "product", SCHEMA, "id_a", PAGE_ROWS, **options)


def test_pages_are_ranges_of_the_key(mariadb: Connect, connections: list[Any]) -> None:
    """The pages have every row once, in the order of the key, and reads are counted."""
    relation = _open(mariadb, connections)
    rows = [row for p in range(relation.pages) for row in relation.read_page(p).rows.to_pylist()]
    table = cases.master("int64", sorted(cases.master_numbers()))
    assert rows == table.to_pylist()
    assert relation.unique
    counted = relation.counters
    assert (counted.pages_read, counted.seeks, counted.look_ups) == (relation.pages, 1, 0)
    assert counted.bytes_read == sum(relation.read_page(p).rows.nbytes for p in range(relation.pages))


def test_looks_keys_up(mariadb: Connect, connections: list[Any]) -> None:
    """The table's index returns the page of a key, or -1 if there is none."""
    relation = _open(mariadb, connections)
    ordered = sorted(cases.master_numbers())
    wanted = np.array([*ordered, -5, 1000])
    assert relation.locate(wanted).tolist() == [i // PAGE_ROWS for i in range(len(ordered))] + [-1, -1]
    assert relation.counters.look_ups == len(wanted)


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_every_join_reads_it(
    mariadb: Connect,
    connections: list[Any],
    algorithm: type[SemiStreamJoin],
    how: Any,  # noqa: ANN401 - a literal
) -> None:
    """All joins give the oracle's rows."""
    stream = cases.stream("int64", cases.SHAPES["null keys"](np.random.default_rng(3)))
    join = algorithm(_open(mariadb, connections), stream.schema, "a", MEMORY, how=how)
    out = [row for batch in stream.to_batches(max_chunksize=100) for row in join.feed(batch)] + join.finish()
    assert multiset(out) == cases.expected("int64", "null keys", 3, how)
    assert len(connections) == 1


def test_opens_a_broken_connection_again(mariadb: Connect, connections: list[Any]) -> None:
    """When the server ends the connection, the next read opens exactly one new one."""
    relation = _open(mariadb, connections)
    before = relation.read_page(0).rows.to_pylist()
    with mariadb() as other, other.cursor() as cursor:
        cursor.execute("KILL %s", (connections[0].thread_id(),))
    assert relation.read_page(0).rows.to_pylist() == before
    assert len(connections) == 2


def test_says_that_the_server_is_away(mariadb: Connect, connections: list[Any]) -> None:
    """While no connection can be opened, each read raises the driver's error."""
    away = False

    def connect() -> Any:  # noqa: ANN401 - pymysql has no types of its own here
        if away:
            raise pymysql.OperationalError(2003, "no server")
        connections.append(mariadb())
        return connections[-1]

    relation = MariaDbRelation(connect, "product", SCHEMA, "id_a", PAGE_ROWS)
    relation.close()
    away = True
    for _ in range(2):
        with pytest.raises(pymysql.OperationalError, match="no server"):
            relation.read_page(0)


def test_sees_rows_that_came_after_it_was_opened(mariadb: Connect, connections: list[Any]) -> None:
    """A row that is inserted later is found, also below the first key and above the last."""
    relation = _open(mariadb, connections)
    with mariadb() as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO product (id_a, name) VALUES (-7, 'low'), (5000, 'high')")
        other.commit()
    numbers = [-7, 5000, cases.master_numbers()[0]]
    stream = cases.stream("int64", numbers)
    join = CHybridJoin(relation, stream.schema, "a", MEMORY, columns=["name"])
    out = [row for batch in stream.to_batches() for row in join.feed(batch)] + join.finish()
    table = pa.table({"id_a": numbers, "name": ["low", "high", cases.master("int64", numbers[2:])["name"][0].as_py()]})
    assert multiset(out) == nested_loop_join(stream, table, equal_keys(["a"], ["id_a"]), ["name"], outer=False)


@pytest.mark.parametrize("algorithm", [CHybridJoin, CachedIndexNestedLoopJoin])
def test_a_row_that_comes_after_its_events_matches_later_ones(
    mariadb: Connect, connections: list[Any], algorithm: type[SemiStreamJoin]
) -> None:
    """A key that was absent is looked up again when `remembered` seconds are over, and not before."""
    now = 1000.0
    relation = _open(mariadb, connections, remembered=5.0, clock=lambda: now)
    stream = cases.stream("int64", [5000])
    join = algorithm(relation, stream.schema, "a", MEMORY, how="left", columns=["name"])

    def names() -> list[str | None]:
        out = [row for batch in stream.to_batches() for row in join.feed(batch)] + join.finish()
        return [name for batch in out for name in batch["name"].to_pylist()]

    assert names() == [None]
    with mariadb() as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO product (id_a, name) VALUES (5000, 'late')")
        other.commit()
    look_ups = relation.counters.look_ups
    now += 4.9
    assert names() == [None]
    assert relation.counters.look_ups == look_ups, "the key is remembered as absent"
    now += 0.1
    assert names() == ["late"]


def test_absent_keys_that_are_remembered_for_no_time_are_refused() -> None:
    """A join could not tell when to forget."""
    with pytest.raises(ValueError, match=r"remembered must be more than 0 seconds, got 0: try 10\.0"):
        MariaDbRelation(lambda: None, "product", SCHEMA, "id_a", remembered=0)


def test_a_page_that_outgrows_its_memory_is_an_error(mariadb: Connect, connections: list[Any]) -> None:
    """A page that grows beyond its planned memory is an error."""
    relation = _open(mariadb, connections)
    with mariadb() as other, other.cursor() as cursor:
        cursor.executemany("INSERT INTO product (id_a) VALUES (%s)", [(n,) for n in range(-1000, -1)])
        other.commit()
    with pytest.raises(ValueError, match=r"must fit into .* bytes, it has grown to .*: open the relation again"):
        relation.read_page(0)


def test_a_key_of_text_is_refused() -> None:
    """A text key is refused, because the server's collation orders it, so pages cannot be ranges of it."""
    with pytest.raises(ValueError, match=r"key must be one integer column, got .*id_a: string.*: use a page file"):
        MariaDbRelation(lambda: None, "product", cases.master("string", []).schema, "id_a")
