"""The whole stack, Airflow included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services import stack

if TYPE_CHECKING:
    from foundation.settings import Settings


@pytest.fixture(scope="session")
def running(running: Settings) -> Settings:
    """Kafka, MariaDB and Airflow of this test run alone."""
    stack.up(print)
    return running
