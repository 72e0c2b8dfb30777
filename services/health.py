"""Health checks: each sends a request to the service, over the protocol that its clients use.

`python -m services.health SERVICE` is the health check of a container: if the service is not healthy, it prints one
line and ends with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import urllib.request
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import pymysql
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from foundation.connections import connect, login
from foundation.errors import FreshetError
from foundation.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from foundation.settings import Settings

TIMEOUT_SECONDS = 5
AIRFLOW_COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
SPARK_MASTER_PAGE = "http://127.0.0.1:8080/json/"
SPARK_WORKER_PAGE = "http://127.0.0.1:8081/json/"


def kafka(config: Settings) -> str | None:
    """Return None when the broker answers, else why not."""
    milliseconds = TIMEOUT_SECONDS * 1000
    try:
        # Open a plain connection first: if nothing listens on the port, kafka-python retries until its timeout.
        socket.create_connection((config.kafka_host, config.kafka_port), TIMEOUT_SECONDS).close()
        KafkaAdminClient(
            bootstrap_servers=config.kafka_bootstrap, request_timeout_ms=milliseconds, bootstrap_timeout_ms=milliseconds
        ).close()
    except (OSError, KafkaError) as error:
        return f"no broker answers at {config.kafka_bootstrap} ({error})"
    return None


def mariadb(config: Settings) -> str | None:
    """Return None when root can log in, else why not."""
    try:
        with connect(login("root", config).without_database(), answer_seconds=TIMEOUT_SECONDS) as connection:
            connection.ping(reconnect=False)
    except pymysql.MySQLError as error:
        return str(error.args[-1])
    return None


def airflow(config: Settings, components: tuple[str, ...] = AIRFLOW_COMPONENTS) -> str | None:
    """Return None when these components of Airflow are healthy, else those that are not."""
    url = f"{config.airflow_api}/api/v2/monitor/health"
    try:
        answer = _answer(url)
    except (OSError, ValueError) as error:
        return f"no answer from {url} ({error})"
    status = {name: answer[name]["status"] for name in components}
    unhealthy = [f"{name} {value or 'not started yet'}" for name, value in status.items() if value != "healthy"]
    return ", ".join(unhealthy) or None


def spark_master(_config: Settings) -> str | None:
    """Return None when this container's Spark master is alive, else why not."""
    try:
        status = _answer(SPARK_MASTER_PAGE)["status"]
    except (OSError, ValueError) as error:
        return f"no answer from {SPARK_MASTER_PAGE} ({error})"
    return None if status == "ALIVE" else f"it is {status}"


def spark_worker(_config: Settings) -> str | None:
    """Return None when this container's Spark worker is connected to its master, else why not."""
    try:
        master = _answer(SPARK_WORKER_PAGE)["masterurl"]
    except (OSError, ValueError) as error:
        return f"no answer from {SPARK_WORKER_PAGE} ({error})"
    return None if master else "it is not connected to its master"


def _answer(url: str) -> Any:  # noqa: ANN401  # JSON
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310  # http, from the settings
            return json.load(answer)
    except HTTPException as error:
        raise ValueError(f"the program on that port does not speak HTTP: {error!r}") from error


CHECKS: dict[str, Callable[[Settings], str | None]] = {"kafka": kafka, "mariadb": mariadb, "airflow": airflow}
CONTAINER_CHECKS: dict[str, Callable[[Settings], str | None]] = {
    **{name: partial(airflow, components=(name,)) for name in AIRFLOW_COMPONENTS},
    "spark-master": spark_master,
    "spark-worker": spark_worker,
}


def main() -> None:
    """Check one service."""
    parser = argparse.ArgumentParser(prog="python -m services.health")
    parser.add_argument("service", choices=CONTAINER_CHECKS)
    service = parser.parse_args().service
    try:
        obstacle = CONTAINER_CHECKS[service](settings())
    except FreshetError as error:
        obstacle = str(error)
    sys.exit(obstacle and f"{service} is NOT healthy: {obstacle}")


if __name__ == "__main__":
    main()
