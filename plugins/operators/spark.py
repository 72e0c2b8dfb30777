"""Tasks that submit our short Spark programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout

from foundation import spark_launch
from foundation.errors import EndedError
from foundation.settings import settings
from plugins.hooks.spark import DRIVER_MEMORY, application_environment, program_file
from plugins.one_line import RETRY_POLICY, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk import Context


def exit_code(failure: AirflowException) -> str:
    """Return how spark-submit ended, without its command line and the log's tail, which Airflow's message repeats."""
    found = re.search(r"Error code is: (-?\d+)", str(failure))
    return f"exit code {found[1]}" if found else str(failure)


class SparkApplicationOperator(SparkSubmitOperator):
    """Submits one of the programs in spark_apps/ for a pipeline, and waits for its end.

    The warehouse's password and the addresses come from Airflow's connections and go to the program by its
    environment. They are read when the task runs, so they are in no command line, template or log.

    Args:
        program: the file's name, without its ending.
        pipeline: the name of a file in pipelines/.
        options: more of the program's own, such as {"minutes": "60"}.
        **kwargs: Airflow's own.
    """

    def __init__(self, *, program: str, pipeline: str, options: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        more = [word for name, value in (options or {}).items() for word in (f"--{name}", value)]
        super().__init__(
            application=str(program_file(program)),
            application_args=["--pipeline", pipeline, *more],
            name=program,
            driver_memory=DRIVER_MEMORY,
            conf={"spark.driver.extraJavaOptions": spark_launch.java_options(settings().jars, short=True)},
            **{"retry_policy": RETRY_POLICY, **kwargs},
        )
        self._killed = False

    def execute(self, context: Context) -> None:
        """Run the program to its end."""
        with one_line():
            try:
                super().execute(context)
            except AirflowTaskTimeout:
                super().on_kill()  # Airflow does so only for an error that it knows
                raise
            except AirflowException as failure:
                raise EndedError(
                    f"{self.name} ended with {exit_code(failure)}", "Its own last line, above, says why."
                ) from None
            if self._killed:
                raise EndedError(f"{self.name} was killed", "Its next run does what it has not finished.")

    def on_kill(self) -> None:
        """End the program; Airflow may let `execute` go on after this."""
        self._killed = True
        super().on_kill()

    def _get_hook(self) -> SparkSubmitHook:
        """Return Spark's hook with the program's jars and environment; SparkSubmitOperator calls this."""
        self.jars = ",".join(spark_launch.connector_jars(settings().jars))
        hook = super()._get_hook()
        hook._env_vars = application_environment()  # noqa: SLF001  # kept out of templates
        return hook
