"""Is each service able to do its work? Asked of the service itself, over the way its clients take."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pymysql
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from services.warehouse import connect, login

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.settings import Settings

TIMEOUT_SECONDS = 5
AIRFLOW_COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")


def kafka(chosen: Settings) -> str | None:
    """Return None when the broker answers, else why not."""
    milliseconds = TIMEOUT_SECONDS * 1000
    try:
        # Asked first, because kafka-python tries again for all of its time where nobody listens.
        socket.create_connection((chosen.kafka_host, chosen.kafka_port), TIMEOUT_SECONDS).close()
        KafkaAdminClient(
            bootstrap_servers=chosen.kafka_bootstrap, request_timeout_ms=milliseconds, bootstrap_timeout_ms=milliseconds
        ).close()
    except (OSError, KafkaError) as error:
        return f"no broker answers at {chosen.kafka_bootstrap} ({error})"
    return None


def mariadb(chosen: Settings) -> str | None:
    """Return None when the server lets its root account in, else why not."""
    try:
        with connect(login("root", chosen).without_database()) as connection:
            connection.ping(reconnect=False)
    except pymysql.MySQLError as error:
        return str(error.args[-1])
    return None


def airflow(chosen: Settings) -> str | None:
    """Return None when every component of Airflow is healthy, else which is not."""
    url = f"{chosen.airflow_api}/api/v2/monitor/health"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310  # http, from the settings
            said = json.load(answer)
    except (OSError, ValueError) as error:
        return f"no answer from {url} ({error})"
    unwell = [
        f"{name} {said[name]['status'] or 'not there yet'}"
        for name in AIRFLOW_COMPONENTS
        if said[name]["status"] != "healthy"
    ]
    return ", ".join(unwell) or None


CHECKS: dict[str, Callable[[Settings], str | None]] = {"kafka": kafka, "mariadb": mariadb, "airflow": airflow}
