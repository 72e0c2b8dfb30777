"""Tasks that submit our Spark applications."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook

from foundation import spark_launch
from foundation.errors import KilledError
from foundation.settings import PREFIX, ROOT, settings
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook, secret_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk import Context


class SparkApplicationOperator(SparkSubmitOperator):
    """Submits one of the programs in spark_apps/ for a pipeline; `short` says that it runs for seconds only.

    `options` are more of the program's own, such as {"minutes": "60"}; `metered` says that it serves metrics.

    The warehouse's password and the addresses come from Airflow's connections and go to the application by its
    environment. They are read when the task runs, so they are in no command line, template or log.
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
            **kwargs,
        )
        self._metered = metered
        self._killed = False
        self._goes_on = False

    def execute(self, context: Context) -> None:
        """Run the application to its end."""
        self._goes_on = context["ti"].try_number > 1
        super().execute(context)
        if self._killed:
            raise KilledError(f"{self.name} was killed", "Its next run does what it has not finished.")

    def on_kill(self) -> None:
        """End the application; Airflow may let `execute` go on after this."""
        self._killed = True
        super().on_kill()

    def _get_hook(self) -> SparkSubmitHook:
        loader = WarehouseHook("loader").login()
        host, _, port = BrokerHook().bootstrap().rpartition(":")
        addresses = {
            "KAFKA_HOST": host,
            "KAFKA_PORT": port,
            "MARIADB_HOST": loader.host,
            "MARIADB_PORT": str(loader.port),
            "DATABASE": loader.database or "",
            "LOADER_PASSWORD": loader.password,
            "ASKED_BY": str(os.getpid()),  # were this process killed, the application would see it and stop
            "GOES_ON": "1" if self._goes_on else "",
        }
        if self._metered:
            metrics = BaseHook.get_connection("metrics_default")
            addresses |= {"METRICS_PORT": str(metrics.port), "METRICS_PASSWORD": metrics.password or ""}
        self.jars = ",".join(spark_launch.connector_jars(settings().jars))
        hook = super()._get_hook()
        given = {PREFIX + name: value for name, value in addresses.items()}
        hook._env_vars = {**dict.fromkeys(secret_variables(), ""), **given}  # noqa: SLF001  # kept out of templates
        return hook
