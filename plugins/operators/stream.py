"""Tasks that wish a pipeline's long-running programs running or stopped, and wait until they are.

A program runs apart from its task: the task starts a keeper (spark_apps/keep_program.py), and the triggerer watches
it. So the stream outlives the task, its worker, the scheduler and a restart of Airflow.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from abc import abstractmethod
from datetime import UTC
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowSkipException

from foundation.errors import GaveUpError, NotInTimeError
from foundation.settings import ROOT, settings
from plugins.hooks.broker import BrokerHook
from plugins.hooks.spark import application_environment, submit_command
from plugins.hooks.warehouse import WarehouseHook
from plugins.one_line import one_line
from plugins.operators.base import PipelineOperator
from plugins.triggers.program import GONE_SECONDS, ProgramTrigger, end_of, works
from spark_apps.keep_program import role
from spark_apps.running.lease import is_held
from spark_apps.running.starts import newest_end
from spark_apps.running.wish import read_wish, wish_running, wish_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from airflow.sdk import Context

    from foundation.connections import Login
    from spark_apps.running.wish import Program, Wish

STOP_SECONDS = 120.0
SOON_SECONDS = 10.0  # what happens within them is awaited in the task itself


def asked_by(context: Context) -> str:
    """Return who triggered the run of a task."""
    run = context["dag_run"]
    return getattr(run, "triggering_user_name", None) or str(run.run_type)


class RunProgramOperator(PipelineOperator):
    """Wishes a program running, starts its keeper if it has none, and waits in the triggerer until it is stopped.

    Runs count in the order in which they were triggered: one from before the newest start or stop starts nothing. A
    program that runs already with the same options goes on, and this task ends at once and says so.
    """

    program: Program

    def work(self, context: Context) -> None:
        """Start the program, or say why not."""
        loader, run = WarehouseHook("loader").login(), context["dag_run"]
        wish, asked_at = read_wish(loader, self.pipeline, self.program), _in_utc(run.run_after)
        if wish and not wish.running and wish.run_id == run.run_id:  # another try, after the program has ended
            self._report_end({"reason": wish.reason})
            return
        if wish and wish.running and wish.run_id != run.run_id and dict(wish.options) == self.options_now():
            self._skip_if_it_runs(loader, wish)
        is_newest = wish_running(
            loader, self.pipeline, self.program,
            by=asked_by(context), run_id=run.run_id, options=self.options_now(), asked_at=asked_at,
        )  # fmt: skip
        if not is_newest:
            self._skip_as_overtaken(loader)
        self._start_and_watch(run.run_id)

    def watched(self, context: Context, event: Mapping[str, str]) -> None:
        """Do what the triggerer's event asks for."""
        with one_line():
            if event["state"] == "gone":
                self.log.warning("%s has no keeper any more: it was killed. Another one starts now.", self.program)
                self._start_and_watch(context["dag_run"].run_id)
            else:
                self._report_end(event)

    def options_now(self) -> dict[str, str]:
        """Return the program's own options."""
        return {}

    @abstractmethod
    def command(self) -> list[str]:
        """Return the program's command line."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return the variables of the keeper and of the program."""

    def log_file(self) -> Path:
        """Return the file that the program's output goes to."""
        return settings().state / "logs" / f"{self.program}-{self.pipeline}.log"

    def _skip(self, why: str) -> NoReturn:
        """End the task as skipped: a task that succeeds announces new data, and this one has made none."""
        self.log.info("%s", why)
        raise AirflowSkipException(why)

    def _skip_if_it_runs(self, loader: Login, wish: Wish) -> None:
        """End the task if the program is kept. A keeper that has just been started does not hold its lease yet."""
        if soon(lambda: is_held(loader, self.pipeline, role(self.program)), GONE_SECONDS):
            self._skip(
                f"{self.program} of pipeline {self.pipeline!r} runs already, since {wish.since}; run {wish.run_id} "
                "watches it"
            )

    def _skip_as_overtaken(self, loader: Login) -> None:
        wish = read_wish(loader, self.pipeline, self.program)
        said = "started" if wish and wish.running else "stopped"
        by = f" by {wish.wished_by} at {wish.asked_at:%Y-%m-%d %H:%M:%S} UTC" if wish else ""
        self._skip(
            f"{self.program} of pipeline {self.pipeline!r} was {said}{by}, after this run was triggered: nothing to "
            "start. Trigger the Dag again to start it."
        )

    def _start_and_watch(self, run_id: str) -> None:
        keep = [sys.executable, "-m", "spark_apps.keep_program", "--pipeline", self.pipeline, "--run-id", run_id]
        keep += ["--program", self.program, "--log", str(self.log_file()), "--", *self.command()]
        self.log_file().parent.mkdir(parents=True, exist_ok=True)
        with self.log_file().open("ab") as output:
            subprocess.Popen(
                keep,
                cwd=ROOT,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # apart from this task: it lives on when the task's processes are ended
            )
        self.log.info("%s starts; its log: %s", self.program, self.log_file())
        loader = WarehouseHook("loader").login()
        if soon(lambda: end_of(loader, self.pipeline, self.program, run_id) is not None):
            self._report_end(end_of(loader, self.pipeline, self.program, run_id) or {})
            return
        self.defer(trigger=ProgramTrigger(self.pipeline, self.program, run_id), method_name="watched")

    def _report_end(self, event: Mapping[str, str]) -> None:
        if event.get("state") == "replaced":
            self.log.info("run %s was triggered later, and watches %s now", event["by"], self.program)
            return
        if reason := event.get("reason"):
            raise GaveUpError(reason, f"Its log: {self.log_file()}. Correct that, then trigger the Dag again.")
        end = newest_end(WarehouseHook("loader").login(), self.pipeline, self.program)
        self.log.info("%s has stopped. Its last line: %s", self.program, end.last_line if end else "none")


class EnrichStreamOperator(RunProgramOperator):
    """Keeps the Spark application that enriches a pipeline's stream running."""

    reads = ("topic", "snapshot")
    writes = ("enriched",)
    program: Program = "enrich_stream"

    def command(self) -> list[str]:
        """Return spark-submit's command line."""
        return submit_command(self.program, self.pipeline)

    def environment(self) -> dict[str, str]:
        """Return this task's variables with the addresses and passwords that the application uses."""
        return {**os.environ, **application_environment(metered=True)}


class GenerateOperator(RunProgramOperator):
    """Keeps the generator's Kafka producer for a pipeline's topic running until its stream ends."""

    template_fields: Sequence[str] = ("pipeline", "options")
    writes = ("topic",)
    program: Program = "generator"

    def __init__(self, *, options: dict[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options = options

    def options_now(self) -> dict[str, str]:
        """Return the stream's parameters."""
        return {name: str(value) for name, value in self.options.items()}

    def command(self) -> list[str]:
        """Return the producer's command line."""
        topic = self.definition().source.topic
        command = [sys.executable, "-m", "generator", "run", "--sink", "kafka", "--bootstrap", BrokerHook().bootstrap()]
        options = [word for name, value in self.options_now().items() for word in (f"--{name}", value)]
        return [*command, "--topic", topic, *options]

    def environment(self) -> dict[str, str]:
        """Return this task's variables with the warehouse's address, which the keeper needs."""
        return {**os.environ, **application_environment()}


class StopProgramOperator(PipelineOperator):
    """Wishes a program stopped, and waits in the triggerer until nothing of it runs.

    A stop that was asked for before the newest start stops nothing, also when it is tried again.
    """

    def __init__(self, *, program: Program, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.program: Program = program

    def work(self, context: Context) -> None:
        """Write the wish, which the program looks at before each batch."""
        loader, asked_at = WarehouseHook("loader").login(), _in_utc(context["dag_run"].run_after)
        if not wish_stopped(loader, self.pipeline, self.program, by=asked_by(context), asked_at=asked_at):
            wish = read_wish(loader, self.pipeline, self.program)
            if wish and wish.running:
                self._skip(wish.run_id)
        if soon(lambda: not works(loader, self.pipeline, self.program)) and not self._is_started_again(loader):
            self._report()
            return
        trigger = ProgramTrigger(self.pipeline, self.program, until=time.time() + STOP_SECONDS)
        self.defer(trigger=trigger, method_name="stopped")

    def stopped(self, context: Context, event: Mapping[str, str]) -> None:
        """Succeed when nothing of the program runs."""
        with one_line():
            if event["state"] == "replaced":
                self._skip(event["by"])
            if event["state"] == "late":
                raise NotInTimeError(
                    f"{self.program} of pipeline {self.pipeline!r} has not stopped within {STOP_SECONDS:.0f} s",
                    "It stops as soon as it can: the wish stays. Look at its log, then run this Dag again.",
                )
            self._report()

    def _is_started_again(self, loader: Login) -> bool:
        wish = read_wish(loader, self.pipeline, self.program)
        return wish is not None and wish.running

    def _skip(self, by: str) -> NoReturn:
        why = f"run {by} was triggered after this stop, and starts {self.program} of pipeline {self.pipeline!r} again"
        self.log.info("%s", why)
        raise AirflowSkipException(why)

    def _report(self) -> None:
        self.log.info("%s of pipeline %r has stopped, and nothing starts it again", self.program, self.pipeline)


def soon(met: Callable[[], bool], seconds: float = SOON_SECONDS) -> bool:
    """Wait a few seconds for a condition, and return whether it came true."""
    until = time.monotonic() + seconds
    while not met():
        if time.monotonic() > until:
            return False
        time.sleep(SOON_SECONDS / 20)
    return True


def _in_utc(moment: datetime) -> datetime:
    """Return a moment as the warehouse writes it: in UTC, without a zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)
