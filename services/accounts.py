"""Create the warehouse's schema and its four accounts, with the least rights each needs: `python -m services.accounts`.

The loader gets its rights on a table when the table is created: by a migration, or when a pipeline is prepared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pymysql

from foundation.connections import connect, login
from foundation.errors import UnfitError
from foundation.settings import settings
from services.one_line import one_line

if TYPE_CHECKING:
    from foundation.settings import Settings

GRANTS = {
    "owner": "ALL PRIVILEGES ON `{database}`.* TO %s@'%%' WITH GRANT OPTION",
    "loader": "USAGE ON *.* TO %s@'%%'",
    "reader": "SELECT, SHOW VIEW ON `{database}`.* TO %s@'%%'",
    "checker": "SELECT, CREATE TEMPORARY TABLES ON `{database}`.* TO %s@'%%'",
}


def create_accounts(config: Settings) -> None:
    """Create the schema and the accounts that are missing, and give every account its password and rights."""
    root = login("root", config).without_database()
    passwords = {user: config.secret(f"{user}_password") for user in GRANTS}
    try:
        with connect(root) as connection, connection.cursor() as cursor:
            cursor.execute(
                f"CREATE DATABASE IF NOT EXISTS `{config.database}` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
            )
            for user, grant in GRANTS.items():
                cursor.execute("CREATE USER IF NOT EXISTS %s@'%%' IDENTIFIED BY %s", (user, passwords[user]))
                cursor.execute("ALTER USER %s@'%%' IDENTIFIED BY %s", (user, passwords[user]))
                cursor.execute("GRANT " + grant.format(database=config.database), (user,))
    except pymysql.MySQLError as error:
        raise UnfitError(
            f"the accounts cannot be created at {root.host}:{root.port} ({error})",
            "Check that MariaDB runs there and that FRESHET_ROOT_PASSWORD is the password of its root account, "
            "then run this again.",
        ) from error


if __name__ == "__main__":
    with one_line():
        create_accounts(settings())
