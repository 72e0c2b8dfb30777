"""One stack of real services for the whole test run, with its own ports and data; it is removed afterwards."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis.configuration import set_hypothesis_home_dir
from xdist.scheduler import LoadScopeScheduling

from foundation.connections import login
from foundation.settings import PREFIX, ROOT, settings
from services import stack
from services.airflow_api import AirflowApi
from services.ports import PORTS, free_ports
from spark_apps.master.catalogue import load_catalogue
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.tables import create_tables
from spark_apps.pipeline.topics import create_topics
from spark_apps.warehouse.migrations import migrate

# The same examples in every run, however busy the machine is.
hypothesis.settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("repeatable")
# Each Kafka client logs forty lines, which would hide the failure; its errors are raised anyway.
logging.getLogger("kafka").setLevel(logging.CRITICAL)
PRODUCTS = 2000
STATES = ROOT / ".freshet"
NEEDS_AIRFLOW = ("tests/dags/", "tests/services/", "tests/plugins/page/")
LONGEST = "tests/spark_apps/test_exactly_once.py"
set_hypothesis_home_dir(ROOT / ".freshet" / "cache" / "hypothesis")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings


def pytest_configure(config: pytest.Config) -> None:
    """Make a run in the background, and a worker of pytest-xdist, the same as a run in the foreground.

    A shell starts what runs in the background with SIGINT ignored, and so would be all programs that tests interrupt.
    PySpark ends a program that has no main module; a worker gets that of a run without workers.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        sys.modules["__main__"].__spec__ = find_spec("pytest.__main__")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the stacks that workers leave: after Ctrl-C they have five seconds, and a stack may need more."""
    if not hasattr(config, "workerinput"):
        for state in STATES.glob(f"test-{os.getpid()}-*"):
            stack.down_below(state, print)
            shutil.rmtree(state)


class Lanes(LoadScopeScheduling):  # type: ignore[misc]
    """Hands each worker of `pytest -n 2` whole files, and one of them all files that need Airflow."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "airflow" if file.startswith(NEEDS_AIRFLOW) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Lanes:
    """Share the tests out so that a worker starts one stack, and only one worker starts Airflow."""
    return Lanes(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the two longest lanes first; tests that need no service fill the workers at the end."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("integration") is None:
        return 2
    return 0 if item.nodeid.startswith((*NEEDS_AIRFLOW, LONGEST)) else 1


@pytest.fixture(scope="session")
def running() -> Iterator[Settings]:
    """Start Kafka and MariaDB for this test run; the run fails if one of their processes or files outlives it."""
    STATES.mkdir(exist_ok=True)
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    state = Path(tempfile.mkdtemp(prefix=f"test-{run}-", dir=STATES))
    os.environ[f"{PREFIX}STATE"] = str(state)
    pipelines = shutil.copytree(ROOT / "pipelines", state / "pipelines")  # a test may add one
    os.environ[f"{PREFIX}PIPELINES"] = str(pipelines)
    for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True):
        os.environ[PREFIX + name.upper()] = str(port)
    settings.cache_clear()
    try:
        yield stack.up(print, airflow=False)
    finally:
        stack.down(print)
        left = list(stack.marked(settings()))
        kept = STATES / "test-logs" / os.environ.get("PYTEST_XDIST_WORKER", "all")
        shutil.rmtree(kept, ignore_errors=True)
        for logs, copy in ((state / "logs", kept), (state / "airflow" / "logs", kept / "tasks")):
            if logs.exists():  # a start that failed has not written all of them
                shutil.copytree(logs, copy)
        shutil.rmtree(state)
    assert not left, f"these outlived `down`: {left}"


@pytest.fixture(scope="session")
def airflow(running: Settings) -> Iterator[AirflowApi]:
    """Add Airflow to the test run's stack, and return a client of its REST API."""
    stack.up(print)
    with AirflowApi(running) as api:
        yield api


@pytest.fixture(scope="session")
def migrated(running: Settings) -> Settings:
    """Return the settings of the stack after the warehouse's tables are created."""
    migrate(login("owner", running))
    create_tables(login("owner", running), read_pipeline("sales"))
    return running


@pytest.fixture(scope="session")
def catalogue(migrated: Settings) -> Settings:
    """Fill the table of products that all stream tests share: more products than `application.sale` sells."""
    load_catalogue(login("owner", migrated), PRODUCTS)
    return migrated


@pytest.fixture(scope="session")
def topics(running: Settings) -> Settings:
    """Return the settings of the stack after the demo pipeline's topics are created."""
    create_topics(running.kafka_bootstrap, read_pipeline("sales"))
    return running
