"""Airflow tasks that start the stream of events and stop the application that enriches it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from foundation.errors import GaveUpError
from foundation.settings import ROOT
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook, secret_variables
from plugins.operators.base import PipelineOperator
from spark_apps.running import stop
from spark_apps.running.lease import is_running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

PR_SET_PDEATHSIG = 1
FLUSH_SECONDS = 4  # Airflow kills its task 5 s after it has asked the task to end


def _end_with_parent() -> None:
    """Ask the kernel to send this child process SIGTERM when its parent, the Airflow task, dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class GenerateOperator(PipelineOperator):
    """Runs the generator's Kafka producer for a pipeline's topic."""

    template_fields: Sequence[str] = ("pipeline", "options")

    def __init__(self, *, options: dict[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options = options
        self._producer: subprocess.Popen[str] | None = None

    def work(self, context: Context) -> None:
        """Produce until the stream's end, and log what the producer prints."""
        with subprocess.Popen(
            self.command(),
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name not in secret_variables()},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  # it does one system call
        ) as self._producer:
            for line in self._producer.stdout or ():
                self.log.info("%s", line.rstrip())
        if self._producer.returncode != 0:
            raise GaveUpError(
                f"the generator ended with exit code {self._producer.returncode}", "Its last line, above, says why."
            )

    def command(self) -> list[str]:
        """Return the producer's command line."""
        topic = self.definition().source.topic
        command = [sys.executable, "-m", "generator", "run", "--sink", "kafka", "--bootstrap", BrokerHook().bootstrap()]
        options = [word for name, value in self.options.items() for word in (f"--{name}", value)]
        return [*command, "--topic", topic, *options]

    def on_kill(self) -> None:
        """Ask the producer to end: it sends the events that it has buffered, and reports how many were acknowledged."""
        if self._producer is not None:
            self._producer.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):  # it continues to flush until Airflow kills it
                self._producer.wait(FLUSH_SECONDS)


class RequestStopOperator(PipelineOperator):
    """Asks a pipeline's application to stop between two batches."""

    def work(self, context: Context) -> None:
        """Request the stop in the table `pipeline_control`, where the application looks before each batch."""
        loader = WarehouseHook("loader").login()
        if not is_running(loader, self.pipeline):
            self.log.info(
                "no application works on pipeline %r now; if Airflow retries one, that one stops at once",
                self.pipeline,
            )
        stop.request(loader, self.pipeline)


class EnsureDagRunsOperator(TriggerDagRunOperator):
    """Starts a run of a long-lived Dag, unless one is queued or runs."""

    def execute(self, context: Context) -> None:
        """Trigger the Dag, or log that nothing is to start."""
        if context["ti"].get_dr_count(self.trigger_dag_id, states=["queued", "running"]):
            self.log.info("a run of %r is queued or running: nothing to start", self.trigger_dag_id)
            return
        super().execute(context)
