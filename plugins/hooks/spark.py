"""Our Spark programs as Airflow's connections let them run: environment and command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook

from foundation import spark_launch
from foundation.settings import PREFIX, ROOT, settings
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook, secret_variables

if TYPE_CHECKING:
    from pathlib import Path

DRIVER_MEMORY = "1g"


def program_file(program: str) -> Path:
    """Return the file of one of the programs in spark_apps/."""
    return ROOT / "spark_apps" / f"{program}.py"


def application_environment(*, metered: bool = False) -> dict[str, str]:
    """Return the variables that a program gets: what it uses, and an empty text for every other secret.

    Args:
        metered: the program serves metrics.
    """
    loader = WarehouseHook("loader").login()
    host, _, port = BrokerHook().bootstrap().rpartition(":")
    used = {
        "KAFKA_HOST": host,
        "KAFKA_PORT": port,
        "MARIADB_HOST": loader.host,
        "MARIADB_PORT": str(loader.port),
        "DATABASE": loader.database or "",
        "LOADER_PASSWORD": loader.password,
    }
    if metered:
        metrics = BaseHook.get_connection("metrics_default")
        used |= {"METRICS_PORT": str(metrics.port), "METRICS_PASSWORD": metrics.password or ""}
    return {**dict.fromkeys(secret_variables(), ""), **{PREFIX + name: value for name, value in used.items()}}


def submit_command(program: str, pipeline: str) -> list[str]:
    """Return the command line that submits a program by the connection `spark_default`."""
    hook = SparkSubmitHook(
        conf={"spark.driver.extraJavaOptions": spark_launch.java_options(settings().jars)},
        jars=",".join(spark_launch.connector_jars(settings().jars)),
        name=program,
        driver_memory=DRIVER_MEMORY,
        application_args=["--pipeline", pipeline],
    )
    return list(hook._build_spark_submit_command(str(program_file(program))))  # noqa: SLF001  # no public way
