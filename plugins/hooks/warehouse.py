"""Logins to the warehouse from Airflow connections."""

from __future__ import annotations

import os

from airflow.sdk import BaseHook

from foundation.connections import Login
from foundation.errors import ConnectionFieldError
from foundation.settings import PREFIX, SECRET_NAMES


def secret_variables() -> list[str]:
    """Return the names of environment variables with secrets, which programs that a task starts do not need."""
    ours = {PREFIX + name.upper() for name in (*SECRET_NAMES, "airflow_database")}
    return [name for name in os.environ if name in ours or name.startswith(("AIRFLOW_CONN_", "AIRFLOW__"))]


class WarehouseHook(BaseHook):
    """Turns the connection `warehouse_<account>` into a login."""

    conn_name_attr = "conn_id"
    hook_name = "Freshet warehouse"

    def __init__(self, account: str) -> None:
        super().__init__()
        self.conn_id = f"warehouse_{account}"

    def login(self) -> Login:
        """Return the account, its password and the address of the warehouse.

        Raises:
            ConnectionFieldError: the connection lacks one of host, port, login, password, schema.
        """
        found = self.get_connection(self.conn_id)
        if not (found.host and found.port and found.login and found.password and found.schema):
            needed = ("host", "port", "login", "password", "schema")
            missing = ", ".join(name for name in needed if not getattr(found, name))
            raise ConnectionFieldError(
                f"connection {self.conn_id!r} must have {missing}", "Set it in Admin, Connections."
            )
        return Login(found.host, found.port, found.login, found.password, found.schema)
