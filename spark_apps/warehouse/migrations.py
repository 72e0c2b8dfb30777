"""Migrate the warehouse's tables: yoyo applies each numbered file of `sql/` once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yoyo import get_backend, read_migrations
from yoyo.connections import DatabaseURI

from foundation.connections import connect
from foundation.errors import AlreadyRunningError
from foundation.settings import ROOT

if TYPE_CHECKING:
    from foundation.connections import Login

LOCK_SECONDS = 60


def migrate(owner: Login) -> list[str]:
    """Apply the migrations that are missing and return their names."""
    address = DatabaseURI("mysql", owner.user, owner.password, owner.host, owner.port, owner.database, {})
    # The server's own lock instead of yoyo's row: the server releases it when its holder is killed.
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('freshet.migrations', %s)", (LOCK_SECONDS,))
        if cursor.fetchall() != ((1,),):
            raise AlreadyRunningError(
                f"another run still migrates the warehouse after {LOCK_SECONDS} s",
                "Wait until it ends, then run this Dag again.",
            )
        backend = get_backend(address.uri)
        missing = backend.to_apply(read_migrations(str(ROOT / "sql")))
        backend.apply_migrations(missing)
        backend.connection.close()
        return [migration.id for migration in missing]
