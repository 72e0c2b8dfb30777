"""A failed task of Freshet ends with one line, and is retried only if a retry can help."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowTaskTimeout

from foundation.errors import FreshetError, LoadError, TopicError
from plugins.one_line import RETRY_POLICY, PermanentExit, TransientExit, one_line
from plugins.operators.base import FreshetOperator
from plugins.operators.dags import RunDagOperator
from plugins.operators.spark import SparkApplicationOperator, exit_code
from plugins.sensors.stream import StreamSensor

if TYPE_CHECKING:
    from airflow.sdk import Context


@pytest.mark.parametrize(
    ("failure", "exit_", "action"),
    [
        (LoadError("table 'a': out of range", "Correct the column."), PermanentExit, RetryAction.FAIL),
        (TopicError("no broker answers", "Start it."), TransientExit, RetryAction.DEFAULT),
        (pymysql.OperationalError(2003, "Can't connect"), TransientExit, RetryAction.DEFAULT),
    ],
)
def test_an_error_is_one_line_and_an_exit(
    failure: Exception, exit_: type[SystemExit], action: RetryAction, caplog: pytest.LogCaptureFixture
) -> None:
    """A task's error is one line and a SystemExit, so Airflow logs no traceback; only transient errors retry."""
    with pytest.raises(SystemExit) as caught, one_line():
        raise failure
    assert type(caught.value) is exit_
    assert RETRY_POLICY.evaluate(caught.value, 1, 9).action is action
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is None
    said = str(failure) if isinstance(failure, FreshetError) else str(failure.args[-1])
    assert said in record.getMessage()
    assert "\n" not in record.getMessage()


def test_a_task_that_takes_too_long_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A task that Airflow ends by its execution_timeout fails with one line that names it."""
    with pytest.raises(TransientExit, match="the task has not ended within its execution_timeout"), one_line():
        raise AirflowTaskTimeout
    (record,) = caplog.records
    assert record.exc_info is None


def test_a_spark_program_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """When Airflow's limit of time is over, the program is killed, and the task fails with one line."""
    killed: list[str] = []

    def take_too_long(*_words: object) -> None:
        raise AirflowTaskTimeout

    monkeypatch.setattr(SparkSubmitOperator, "execute", take_too_long)
    monkeypatch.setattr(SparkSubmitOperator, "on_kill", lambda self: killed.append(self.task_id))
    with pytest.raises(TransientExit, match="has not ended within its execution_timeout"):
        SparkApplicationOperator(task_id="a", program="estimate_frequency", pipeline="sales").execute({})
    assert killed == ["a"]


def test_a_sensor_that_waited_in_vain_says_so() -> None:
    """A sensor whose condition does not come true within its timeout fails with one line that names the timeout."""

    class Never(StreamSensor):
        def poke(self, context: Context) -> bool:  # noqa: ARG002  # as sensors have it
            return False

    sensor = Never(task_id="never", mode="poke", poke_interval=0.001, timeout=0.001)
    with pytest.raises(TransientExit, match=r"never: it did not come true within 0\.001 s"):
        sensor.execute({})


def test_a_dag_that_is_paused_or_fails_is_named() -> None:
    """A task that runs another Dag fails with one line if that Dag is paused, or if its run has failed."""
    paused = SimpleNamespace(get_dag=lambda _dag: SimpleNamespace(is_paused=True))
    task = RunDagOperator(task_id="sales.check")
    with pytest.raises(PermanentExit, match=r"Dag sales\.check is paused, so its run would wait for ever. Unpause it"):
        task.execute({"ti": paused})  # type: ignore[typeddict-item]  # as much of it as is used
    failed = ("trigger", {"run_ids": ["manual__1"], "manual__1": "failed"})
    with pytest.raises(TransientExit, match=r"Dag sales\.check has failed, run manual__1"):
        task.execute_complete({}, failed)


def test_a_mistake_of_our_own_keeps_its_traceback() -> None:
    """An unexpected exception keeps its traceback, because a developer needs it."""
    with pytest.raises(ZeroDivisionError), one_line():
        1 / 0  # noqa: B018


def test_an_operator_fails_so_by_itself() -> None:
    """An operator that raises an error fails with one line, without code of its author."""

    class Failing(FreshetOperator):
        def work(self, context: Context) -> Any:  # noqa: ANN401, ARG002  # as operators have it
            raise LoadError("table 'a': out of range", "Correct the column.")

    operator = Failing(task_id="failing")
    assert operator.retry_policy is RETRY_POLICY
    with pytest.raises(PermanentExit):
        operator.execute({})


def test_an_application_fails_without_its_command_line() -> None:
    """A failed application's error has the reason only, without Airflow's message that repeats the command line."""
    told = "Cannot execute: spark-submit --conf a. Error code is: 143.\nlast lines"
    assert exit_code(RuntimeError(told)) == "exit code 143"  # type: ignore[arg-type]
    assert SparkApplicationOperator(task_id="a", program="enrich_stream", pipeline="sales").retry_policy is RETRY_POLICY
