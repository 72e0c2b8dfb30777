"""A failed task of Freshet ends with one line, and is retried only if a retry can help."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from airflow.sdk.definitions.retry_policy import RetryAction

from foundation.errors import FreshetError, LoadError, TopicError
from plugins.one_line import RETRY_POLICY, PermanentExit, TransientExit, one_line
from plugins.operators.base import FreshetOperator
from plugins.operators.spark import SparkApplicationOperator, exit_code

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
