"""How a task of ours fails: with one line that says what, where and what to do next, and without a traceback.

Airflow logs a traceback for every exception but SystemExit. So an error of Freshet's is logged and becomes one of two
exits. The retry policy of our operators fails a task at once when the error is permanent.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pymysql
from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule

from foundation.errors import FreshetError, PermanentError

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)


class PermanentExit(SystemExit):
    """Ends a task that no retry can help."""


class TransientExit(SystemExit):
    """Ends a task that a retry may help."""


RETRY_POLICY = ExceptionRetryPolicy(
    rules=[RetryRule(exception=PermanentExit, action=RetryAction.FAIL, reason="time does not cure it")]
)


@contextmanager
def one_line() -> Iterator[None]:
    """Let the block fail with one line."""
    try:
        yield
    except FreshetError as error:
        log.error("%s", error)  # noqa: TRY400  # the traceback is what nobody wants to read
        raise (PermanentExit if isinstance(error, PermanentError) else TransientExit)(1) from None
    except pymysql.MySQLError as error:
        log.error("the warehouse says: %s. See whether it is healthy: make status", error.args[-1])  # noqa: TRY400
        raise TransientExit(1) from None
