"""A program does not run half blind on the tables of an older version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlparse

from foundation.connections import connect, login
from foundation.errors import TableError
from foundation.settings import ROOT
from spark_apps.warehouse.version import check_version

if TYPE_CHECKING:
    from foundation.settings import Settings

pytestmark = pytest.mark.integration
RENAMES = ROOT / "sql" / "0008-counters-by-one-name.sql"


def test_tables_of_this_version_pass(migrated: Settings) -> None:
    """A warehouse that is migrated has every column that programs need."""
    check_version(login("loader", migrated))


def test_a_column_of_an_older_version_is_named_with_what_to_do(migrated: Settings) -> None:
    """The migration that renames it can be repeated, whatever it had done already."""
    owner = login("owner", migrated)
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute("ALTER TABLE shed_segment RENAME COLUMN replayed_by TO taken_by")
    try:
        with pytest.raises(
            TableError, match=r"shed_segment\.replayed_by does not exist\. Run the pipeline's Dag prepare"
        ):
            check_version(login("loader", migrated))
    finally:
        with connect(owner) as connection, connection.cursor() as cursor:
            for statement in sqlparse.split(RENAMES.read_text()):
                cursor.execute(statement)
    check_version(login("loader", migrated))
