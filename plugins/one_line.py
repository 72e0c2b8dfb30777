"""How our Airflow tasks fail: with one line that says what, where and what to do next, and without a traceback.

Airflow logs a traceback for every exception but SystemExit. So one of Freshet's errors is logged and then raised as one
of two kinds of SystemExit. The retry policy of our operators fails an Airflow task at once if the error is permanent.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pymysql
from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowTaskTimeout

from foundation.errors import FreshetError, PermanentError
from spark_apps.running.failures import is_permanent
from spark_apps.running.failures import one_line as describe

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)


class OneLineExit(SystemExit):
    """Ends an Airflow task after an error; `line` says what, where and what to do next."""

    def __init__(self, line: str) -> None:
        super().__init__(1)
        self.line = line

    def __str__(self) -> str:
        return self.line


class PermanentExit(OneLineExit):
    """Ends an Airflow task after a permanent error."""


class TransientExit(OneLineExit):
    """Ends an Airflow task after a transient error."""


RETRY_POLICY = ExceptionRetryPolicy(
    rules=[RetryRule(exception=PermanentExit, action=RetryAction.FAIL, reason="time does not cure it")]
)


@contextmanager
def one_line() -> Iterator[None]:
    """Log an error of the block in one line, and end the Airflow task without a traceback."""
    try:
        yield
    except FreshetError as error:
        raise _exit(str(error), permanent=isinstance(error, PermanentError)) from None
    except pymysql.MySQLError as error:
        line = f"{describe(error)} See whether MariaDB is healthy: make status"
        raise _exit(line, permanent=is_permanent(error)) from None
    except AirflowTaskTimeout:
        line = "the task has not ended within its execution_timeout. Its log says how far it came; type: make status"
        raise _exit(line, permanent=False) from None


def _exit(line: str, *, permanent: bool) -> OneLineExit:
    log.error("%s", line)
    return PermanentExit(line) if permanent else TransientExit(line)
