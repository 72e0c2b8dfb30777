"""A schema for one test alone, with the warehouse's tables and a small catalogue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import sqlparse
from semistream.relation import PageFile

from foundation.connections import connect, login
from foundation.settings import ROOT
from spark_apps.master import tables
from spark_apps.master.catalogue import load_catalogue
from spark_apps.master.publish import publish
from spark_apps.master.ranking import build_ranking
from spark_apps.pipeline.definition import read_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from foundation.connections import Login
    from foundation.settings import Settings
    from spark_apps.master.snapshots import Snapshot
    from spark_apps.pipeline.definition import Master

SCHEMA = "freshet_master"
ROWS = 1500
MIGRATIONS = ("0001-master-data.sql", "0004-master-state.sql")


@dataclass(frozen=True)
class Warehouse:
    """A login with all rights in the test's schema, and the name of its master table."""

    login: Login
    master: Master

    def run(self, *statements: str) -> None:
        """Run statements in one transaction."""
        with connect(self.login) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return a query's rows."""
        with connect(self.login) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())


@pytest.fixture
def empty(running: Settings) -> Warehouse:
    """Create the warehouse's tables, without rows."""
    root = login("root", running)
    with connect(root) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE OR REPLACE DATABASE {SCHEMA}")
    warehouse = Warehouse(replace(root, database=SCHEMA), read_pipeline("sales").master)
    for file in MIGRATIONS:
        warehouse.run(*sqlparse.split((ROOT / "sql" / file).read_text()))
    return warehouse


@pytest.fixture
def products(empty: Warehouse) -> Warehouse:
    """Create the product table with 1500 rows, and the tables that Freshet keeps beside it."""
    load_catalogue(empty.login, ROWS)
    tables.prepare(empty.login, empty.master)
    return empty


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a pipeline's snapshot folder, next to the folders of other pipelines."""
    return tmp_path / "sales"


def refreshed(products: Warehouse, folder: Path) -> Snapshot:
    """Build and publish the next version."""
    return publish(products.login, products.master, build_ranking(products.login, products.master), folder)


def rows(snapshot: Snapshot) -> list[tuple[object, ...]]:
    """Return all rows of a version; each page is checked against its checksum."""
    relation = PageFile(snapshot.path)
    relation.verify()
    pages = (relation.read_page(page).rows.to_pylist() for page in range(relation.pages))
    return [tuple(row.values()) for page in pages for row in page]


def files(folder: Path) -> set[str]:
    """Return the names of the files in the folder."""
    return {file.name for file in folder.iterdir()}
