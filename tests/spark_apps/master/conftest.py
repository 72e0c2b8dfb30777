"""A schema of one test alone, with the warehouse's tables and a small catalogue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import sqlparse

from services.settings import ROOT
from services.warehouse import connect, login
from spark_apps.master import tables
from spark_apps.master.catalogue import load_catalogue
from spark_apps.pipeline import load_pipeline

if TYPE_CHECKING:
    from services.settings import Settings
    from services.warehouse import Login
    from spark_apps.pipeline import Master

SCHEMA = "freshet_master"
ROWS = 1500
MIGRATIONS = ("0001-master-data.sql", "0004-master-state.sql")


@dataclass(frozen=True)
class Warehouse:
    """A login that may do everything in the test's schema, and the master table in there."""

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
    """The warehouse's tables, without rows."""
    root = login("root", running)
    with connect(root) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE OR REPLACE DATABASE {SCHEMA}")
    warehouse = Warehouse(replace(root, database=SCHEMA), load_pipeline("sales").master)
    for file in MIGRATIONS:
        warehouse.run(*sqlparse.split((ROOT / "sql" / file).read_text()))
    return warehouse


@pytest.fixture
def products(empty: Warehouse) -> Warehouse:
    """The product table with 1500 rows, and all that Freshet keeps beside it."""
    load_catalogue(empty.login, ROWS)
    tables.prepare(empty.login, empty.master)
    return empty
