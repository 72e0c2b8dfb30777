"""Fixtures with the whole stack, Airflow included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services import stack

if TYPE_CHECKING:
    from foundation.settings import Settings


@pytest.fixture(scope="session")
def running(running: Settings) -> Settings:
    """Return the settings of this test run's Kafka, MariaDB and Airflow."""
    stack.up(print)
    return running
