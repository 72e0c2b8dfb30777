"""Airflow's connections as environment variables, for tests that run without Airflow."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from foundation.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def connect_to(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Define a connection by its id and fields, instead of any that the environment has."""
    for name in [*os.environ]:
        if name.startswith(("AIRFLOW_CONN_", "AIRFLOW__", PREFIX)):
            monkeypatch.delenv(name)

    def connect_to(connection: str, **fields: object) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{connection.upper()}", json.dumps(fields))

    return connect_to
