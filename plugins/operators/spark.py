"""Airflow tasks that submit our Spark applications."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException

from foundation import spark_launch
from foundation.errors import EndedError
from foundation.settings import PREFIX, ROOT, settings
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook, secret_variables
from plugins.one_line import RETRY_POLICY, one_line
from spark_apps.running.stop import ASKED_BY, IS_RETRY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk import Context


def exit_code(failure: AirflowException) -> str:
    """Return spark-submit's exit code, without the command line and the end of the log, which Airflow's message has."""
    found = re.search(r"Error code is: (-?\d+)", str(failure))
    return f"exit code {found[1]}" if found else str(failure)


class SparkApplicationOperator(SparkSubmitOperator):
    """Submits one of the programs in spark_apps/ for a pipeline.

    The warehouse's password and the addresses come from Airflow's connections and go to the application by its
    environment. They are read when the Airflow task runs, so they are in no command line, template or log.

    Args:
        program: the name of its file, without `.py`.
        pipeline: the name of a file in pipelines/.
        short: whether the program runs for seconds only.
        metered: whether the program serves metrics.
        options: more options of the program, such as {"minutes": "60"}.
        **kwargs: Airflow's own.
    """

    def __init__(
        self,
        *,
        program: str,
        pipeline: str,
        short: bool = False,
        metered: bool = False,
        options: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        more = [word for name, value in (options or {}).items() for word in (f"--{name}", value)]
        super().__init__(
            application=str(ROOT / "spark_apps" / f"{program}.py"),
            application_args=["--pipeline", pipeline, *more],
            name=program,
            driver_memory="1g",
            conf={"spark.driver.extraJavaOptions": spark_launch.java_options(settings().jars, short=short)},
            **{"retry_policy": RETRY_POLICY, **kwargs},
        )
        self._metered = metered
        self._killed = False
        self._is_retry = False

    def execute(self, context: Context) -> None:
        """Run the application to its end."""
        self._is_retry = context["ti"].try_number > 1
        with one_line():
            try:
                super().execute(context)
            except AirflowException as failure:
                raise EndedError(
                    f"{self.name} ended with {exit_code(failure)}", "Its own last line, above, says why."
                ) from None
            if self._killed:
                raise EndedError(f"{self.name} was killed", "Its next run finishes the work.")

    def on_kill(self) -> None:
        """End the application. `execute` can continue after this."""
        self._killed = True
        super().on_kill()

    def _get_hook(self) -> SparkSubmitHook:
        """Return Spark's hook with the application's jars and environment; SparkSubmitOperator calls this."""
        self.jars = ",".join(spark_launch.connector_jars(settings().jars))
        hook = super()._get_hook()
        hook._env_vars = self._environment()  # noqa: SLF001  # kept out of templates
        return hook

    def _environment(self) -> dict[str, str]:
        """Return the variables that the application gets: what it uses, and an empty text for every other secret."""
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
        if self._metered:
            metrics = BaseHook.get_connection("metrics_default")
            used |= {"METRICS_PORT": str(metrics.port), "METRICS_PASSWORD": metrics.password or ""}
        return {
            **dict.fromkeys(secret_variables(), ""),
            **{PREFIX + name: value for name, value in used.items()},
            ASKED_BY: str(os.getpid()),  # if this process is killed, the application sees that and stops
            IS_RETRY: "1" if self._is_retry else "",
        }
