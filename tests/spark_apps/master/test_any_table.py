"""The master side works with any table that a pipeline's file names, with other keys, columns and NULLs."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from semistream.relation import PageFile

from foundation.connections import connect
from spark_apps.master.changes import read_changes
from spark_apps.master.frequency import Estimate, read_estimate, store_estimate
from spark_apps.master.publish import publish
from spark_apps.master.ranking import build_ranking
from spark_apps.master.tables import prepare
from spark_apps.pipeline.definition import Pipeline
from tests.spark_apps.conftest import Warehouse

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
ARTICLES = """CREATE TABLE article (
    sku VARCHAR(40) NOT NULL, region CHAR(2) NOT NULL, label TEXT NULL, cost DECIMAL(9, 2) NULL, since DATE NULL,
    stock INT NULL, touched DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), PRIMARY KEY (sku, region))"""
ROWS: list[tuple[Any, ...]] = [
    ("A-1", "NZ", "plain", Decimal("1.50"), date(2020, 1, 2), 3),
    ("B 2", "NZ", None, None, None, None),
    ("c'3\\", "NZ", 'quoted "label", with comma', Decimal("0.00"), None, 0),
    ("NULL", "NZ", "NULL", None, date(1999, 12, 31), -7),
    ("Ünï-5", "NZ", "line one\nline two\ttab", Decimal("-9999999.99"), None, None),
]
COLUMNS = ["label", "cost", "since", "stock"]


def pipeline(key: list[str]) -> Pipeline:
    """Return a second pipeline, as its file would define it."""
    return Pipeline.model_validate(
        {
            "name": "orders",
            "memory_mb": 8,
            "source": {"topic": "orders", "partitions": 2, "fields": {"sku": "string", "region": "string"}},
            "master": {"table": "article", "key": key, "columns": COLUMNS, "changed": "touched"},
            "enriched": {"columns": ["sku", "label"], "described_by": "sku"},
        }
    )


@pytest.fixture(params=["utf8mb4_bin", "utf8mb4_uca1400_ai_ci", "latin1_swedish_ci"])
def collation(request: pytest.FixtureRequest) -> str:
    """Return the table's collation: that of Freshet's schema, the server's default, or that of old tables."""
    return str(request.param)


@pytest.fixture(params=[["sku"], ["sku", "region"]], ids=["string key", "two key columns"])
def articles(empty: Warehouse, collation: str, request: pytest.FixtureRequest) -> Warehouse:
    """Create and fill the second pipeline's table."""
    warehouse = Warehouse(empty.login, pipeline(request.param).master)
    warehouse.run(f"{ARTICLES} COLLATE {collation}")
    prepare(warehouse.login, warehouse.master)
    with connect(warehouse.login) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO article (sku, region, label, cost, since, stock) VALUES (%s, %s, %s, %s, %s, %s)", ROWS
        )
    return warehouse


def test_another_table_is_estimated_ranked_checked_published_and_followed(articles: Warehouse, tmp_path: Path) -> None:
    """Every value is published unchanged in the order of the estimate; then an update and a delete are read."""
    from quality.master import check_ranking

    key = articles.master.key
    wanted = [ROWS[4], ROWS[3]]
    # The stream also asks for keys without a row: too long for the column, or equal to a row's key but for case.
    asked = [*(row[0] for row in wanted), "x" * 500, "absent", "null", "ÜNÏ-5"]
    weights = [4.0, 3.0, 2.0, 1.0, 9.0, 9.0]
    table = pa.table({"sku": asked, "region": ["NZ"] * 6, "weight": weights}).select([*key, "weight"])
    assert store_estimate(articles.login, articles.master, Estimate(1, 10.0, table)) == 2
    known = read_estimate(articles.login, articles.master).weights.sort_by([("weight", "descending")])
    assert known["sku"].to_pylist() == [row[0] for row in wanted]
    assert known["weight"].to_pylist() == pytest.approx(weights[:2])

    ranking = build_ranking(articles.login, articles.master)
    assert check_ranking(articles.login, articles.master, ranking, len(ROWS)).failures == []
    snapshot = publish(articles.login, articles.master, ranking, tmp_path)
    relation = PageFile(snapshot.path)
    published = relation.read_page(0).rows.to_pylist()
    names = [*key, *COLUMNS]
    by_sku = {row[0]: dict(zip(["sku", "region", *COLUMNS], row, strict=True)) for row in ROWS}
    assert [row["sku"] for row in published[:2]] == [row[0] for row in wanted]
    assert {row["sku"]: row for row in published} == {
        sku: {name: row[name] for name in names} for sku, row in by_sku.items()
    }

    articles.run("UPDATE article SET label = NULL WHERE sku = 'A-1'", "DELETE FROM article WHERE sku = 'NULL'")
    with connect(articles.login) as connection:
        changes = read_changes(connection, articles.master, snapshot.position)
    assert changes.rows.to_pylist() == [{name: (by_sku["A-1"] | {"label": None})[name] for name in names}]
    assert changes.deleted["sku"].to_pylist() == ["NULL"]
    assert changes.rows.schema.types == relation.schema.types


def test_an_estimate_looks_each_key_up_in_the_master_tables_index(articles: Warehouse) -> None:
    """Storing an estimate uses the key's index, for each collation and for a table that was just filled."""
    articles.run(
        "INSERT INTO article (sku, region) SELECT CONCAT('S', seq), 'NZ' FROM seq_1_to_5000",
        "ALTER TABLE article STATS_AUTO_RECALC = 0",
        "UPDATE mysql.innodb_table_stats SET n_rows = 0 WHERE database_name = DATABASE() AND table_name = 'article'",
        "FLUSH TABLE article",
    )
    asked = pa.table({"sku": [f"S{number}" for number in range(200)], "region": ["NZ"] * 200, "weight": [1.0] * 200})
    articles.run("SET GLOBAL userstat = 1", "FLUSH TABLE_STATISTICS")
    try:
        estimate = Estimate(1, 200.0, asked.select([*articles.master.key, "weight"]))
        assert store_estimate(articles.login, articles.master, estimate) == 199
        read = articles.ask("SELECT rows_read FROM information_schema.table_statistics WHERE table_name = 'article'")
    finally:
        articles.run("SET GLOBAL userstat = 0")
    assert 0 < read[0][0] <= 2 * 200


def test_keys_that_only_their_bytes_tell_apart_are_two_keys(articles: Warehouse) -> None:
    """Keys that the collation calls equal but whose bytes differ are two keys, because the stream joins by bytes."""
    with connect(articles.login) as connection:
        before = read_changes(connection, articles.master, 0).position
        articles.run(
            "UPDATE article SET sku = 'a-1' WHERE sku = 'A-1'",
            "DELETE FROM article WHERE sku = 'B 2'",
            "INSERT INTO article (sku, region) VALUES ('b 2', 'NZ')",
        )
        changes = read_changes(connection, articles.master, before)
    assert sorted(changes.rows["sku"].to_pylist()) == ["a-1", "b 2"]
    assert sorted(changes.deleted["sku"].to_pylist()) == ["A-1", "B 2"]
