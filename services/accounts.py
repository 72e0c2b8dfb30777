"""Make the warehouse's schema and its four accounts, with the least each needs: `python -m services.accounts`.

What the loader may write is granted table by table in the migrations, beside the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundation.connections import connect, login

if TYPE_CHECKING:
    from foundation.settings import Settings

GRANTS = {
    "owner": "ALL PRIVILEGES ON `{database}`.* TO %s@'%%' WITH GRANT OPTION",
    "loader": "USAGE ON *.* TO %s@'%%'",
    "reader": "SELECT, SHOW VIEW ON `{database}`.* TO %s@'%%'",
    "checker": "SELECT, CREATE TEMPORARY TABLES ON `{database}`.* TO %s@'%%'",
}


def create_accounts(chosen: Settings) -> None:
    """Bring schema and accounts to what the settings say; what is right already stays."""
    with connect(login("root", chosen).without_database()) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{chosen.database}` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        for user, grant in GRANTS.items():
            password = chosen.secret(f"{user}_password")
            cursor.execute("CREATE USER IF NOT EXISTS %s@'%%' IDENTIFIED BY %s", (user, password))
            cursor.execute("ALTER USER %s@'%%' IDENTIFIED BY %s", (user, password))
            cursor.execute("GRANT " + grant.format(database=chosen.database), (user,))


if __name__ == "__main__":
    from foundation.settings import settings

    create_accounts(settings())
