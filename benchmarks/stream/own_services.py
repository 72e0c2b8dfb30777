"""A broker and a warehouse for one benchmark, removed at its end."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from foundation.connections import login
from foundation.settings import PREFIX, ROOT, settings
from services import stack
from services.accounts import create_accounts
from services.ports import PORTS, free_ports
from services.secrets_file import ensure_secrets
from spark_apps.warehouse.migrations import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings


@contextmanager
def own_services() -> Iterator[Settings]:
    """Start Kafka and MariaDB on free ports with the warehouse's shared tables; child processes get the settings."""
    state = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / ".freshet"))
    os.environ[f"{PREFIX}STATE"] = str(state)
    os.environ[f"{PREFIX}PIPELINES"] = str(state / "pipelines")
    for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True):
        os.environ[PREFIX + name.upper()] = str(port)
    settings.cache_clear()
    ensure_secrets(state / "secrets.env")
    config = settings()
    try:
        stack.ensure_supervisor(config, _say_nothing)
        stack.start_programs(config, "kafka", "mariadb")
        stack.await_health("mariadb", config, _say_nothing)
        create_accounts(config)
        migrate(login("owner", config))
        stack.await_health("kafka", config, _say_nothing)
        yield config
    finally:
        stack.end(config, _say_nothing)
        shutil.rmtree(state)


def _say_nothing(_line: str) -> None:
    """Discard a line that would stand between a benchmark's tables."""
