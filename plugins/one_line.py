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

from foundation.errors import FreshetError, PermanentError
from spark_apps.running.failures import is_permanent
from spark_apps.running.failures import one_line as describe

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)


class PermanentExit(SystemExit):
    """Ends an Airflow task after a permanent error."""


class TransientExit(SystemExit):
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
        log.error("%s", error)  # noqa: TRY400  # the traceback is what nobody wants to read
        raise (PermanentExit if isinstance(error, PermanentError) else TransientExit)(1) from None
    except pymysql.MySQLError as error:
        log.error("%s See whether MariaDB is healthy: make status", describe(error))  # noqa: TRY400
        raise (PermanentExit if is_permanent(error) else TransientExit)(1) from None
