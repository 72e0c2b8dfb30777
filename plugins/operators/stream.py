"""Tasks that start the stream of events and stop the application that enriches it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from foundation.settings import ROOT
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook, secret_variables
from spark_apps.pipeline.definition import load_pipeline
from spark_apps.running.lease import is_running, request_stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

PR_SET_PDEATHSIG = 1
FLUSH_SECONDS = 4  # Airflow kills a task 5 s after it asked it to end


def _end_with_parent() -> None:
    """Ask the kernel to end this child, politely, should the task's process be killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class GenerateOperator(BaseOperator):
    """Runs the generator's Kafka producer for a pipeline's topic."""

    template_fields: Sequence[str] = ("options",)

    def __init__(self, *, pipeline: str, options: dict[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.options = options
        self._producer: subprocess.Popen[str] | None = None

    def execute(self, context: Context) -> None:
        """Produce until the stream's end and log what the producer says."""
        topic = load_pipeline(self.pipeline).source.topic
        command = [sys.executable, "-m", "generator", "run", "--sink", "kafka", "--bootstrap", BrokerHook().bootstrap()]
        command += ["--topic", topic, *(word for name, value in self.options.items() for word in (f"--{name}", value))]
        environment = {name: value for name, value in os.environ.items() if name not in secret_variables()}
        self._producer = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  # it does one system call
        )
        for line in self._producer.stdout or ():
            self.log.info("%s", line.rstrip())
        if self._producer.wait() != 0:
            raise AirflowFailException(
                f"the generator ended with exit code {self._producer.returncode}; its last line says why"
            )

    def on_kill(self) -> None:
        """Let the producer send what it holds, and say how much that was."""
        if self._producer is not None:
            self._producer.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):  # it goes on to flush for as long as Airflow lets it live
                self._producer.wait(FLUSH_SECONDS)


class RequestStopOperator(BaseOperator):
    """Asks a pipeline's application to stop between two batches."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> None:
        """Set the flag that the application looks at."""
        loader = WarehouseHook("loader").login()
        if not is_running(loader, self.pipeline):
            self.log.info(
                "no application works on pipeline %r now; if Airflow is about to start one again, that ends at once",
                self.pipeline,
            )
        request_stop(loader, self.pipeline)


class EnsureDagRunsOperator(TriggerDagRunOperator):
    """Starts a run of a long-lived Dag, unless one is under way."""

    def execute(self, context: Context) -> None:
        """Trigger the Dag, or say that it runs."""
        if context["ti"].get_dr_count(self.trigger_dag_id, states=["queued", "running"]):
            self.log.info("a run of %r is under way: nothing to start", self.trigger_dag_id)
            return
        super().execute(context)
