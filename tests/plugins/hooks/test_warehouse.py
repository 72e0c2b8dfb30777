"""Each warehouse account's login comes from its Airflow connection; programs of tasks get no other secrets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from foundation.connections import Login
from foundation.errors import ConnectionFieldError
from foundation.settings import PREFIX, SECRET_NAMES
from plugins.hooks.warehouse import WarehouseHook, secret_variables

if TYPE_CHECKING:
    from collections.abc import Callable

COMPLETE = {"host": "db", "port": 3306, "login": "reader", "password": "word", "schema": "freshet"}


def test_a_complete_connection_is_a_login(connect_to: Callable[..., None]) -> None:
    """Each account's login is read from the connection of that account."""
    connect_to("warehouse_reader", conn_type="mysql", **COMPLETE)
    assert WarehouseHook("reader").login() == Login("db", 3306, "reader", "word", "freshet")


@pytest.mark.parametrize("missing", [["host"], ["port"], ["login"], ["password"], ["schema"], ["port", "schema"]])
def test_a_connection_without_a_field_says_which_and_where_to_set_it(
    connect_to: Callable[..., None], missing: list[str]
) -> None:
    """The error states the connection, its missing fields only, and the page in Airflow."""
    fields = {name: value for name, value in COMPLETE.items() if name not in missing}
    connect_to("warehouse_loader", conn_type="mysql", **fields)
    with pytest.raises(ConnectionFieldError) as caught:
        WarehouseHook("loader").login()
    assert caught.value.what == f"connection 'warehouse_loader' must have {', '.join(missing)}"
    assert "Admin, Connections" in caught.value.remedy


def test_a_password_is_in_no_message(connect_to: Callable[..., None]) -> None:
    """A password is neither in the error of an incomplete connection nor in a printed login."""
    connect_to("warehouse_owner", conn_type="mysql", **{**COMPLETE, "password": "very secret", "schema": ""})
    with pytest.raises(ConnectionFieldError) as caught:
        WarehouseHook("owner").login()
    connect_to("warehouse_owner", conn_type="mysql", **{**COMPLETE, "password": "very secret"})
    assert "very secret" not in f"{caught.value}{WarehouseHook('owner').login()}"


def test_every_variable_with_a_secret_is_listed(
    connect_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list has Freshet's secrets, Airflow's configuration and Airflow's connections."""
    connect_to("warehouse_owner", **COMPLETE)
    hidden = {PREFIX + name.upper() for name in SECRET_NAMES}
    hidden |= {"FRESHET_AIRFLOW_DATABASE", "AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_WAREHOUSE_OWNER"}
    for name in hidden:
        monkeypatch.setenv(name, "secret")
    assert set(secret_variables()) == hidden


def test_other_variables_are_not_listed(connect_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The list leaves out the variables that a program needs: its state, its PATH and Airflow's home."""
    connect_to("kafka_default")
    for name in ("FRESHET_STATE", "FRESHET_KAFKA_PORT", "AIRFLOW_HOME"):
        monkeypatch.setenv(name, "word")
    assert secret_variables() == ["AIRFLOW_CONN_KAFKA_DEFAULT"]
    assert "PATH" in os.environ
