"""Every failure is reported in one line."""

from __future__ import annotations

import pymysql
import pytest

from foundation.errors import LoadError, TopicError
from spark_apps.running.failures import is_permanent, one_line

SPARK = """[STREAM_FAILED] Query [id = 1] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error
Traceback (most recent call last):
  File "enrichment.py", line 70, in joined
pymysql.err.OperationalError: (2003, "Can't connect")
\tat org.apache.spark.api.python.BasePythonRunner
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
spark_apps.pipeline.topics.TopicError: topic 'sales' was deleted and recreated.
\tat org.apache.spark.scheduler.Task.run
"""
NO_JAVA = (
    "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number. "
    "Spark's JVM did not start: Java 17 or newer must be on the PATH. See: java -version"
)
WORKER_GONE = "a Python worker died in the middle of its work: it was killed, or the machine had no memory left."


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (
            pymysql.OperationalError(1045, "Access denied for user 'loader'"),
            "warehouse error: Access denied for user 'loader'. Correct FRESHET_LOADER_PASSWORD.",
        ),
        (pymysql.OperationalError(1, "odd"), "warehouse error: odd."),
        (pymysql.InterfaceError("closed"), "warehouse error: closed."),
        (pymysql.InterfaceError(), "warehouse error: the connection is lost."),
        (RuntimeError(SPARK), "topic 'sales' was deleted and recreated."),
        (
            RuntimeError(SPARK.replace("spark_apps.pipeline.topics.TopicError: topic", "AssertionError\n topic")),
            "AssertionError",
        ),
        (
            RuntimeError(f'{SPARK}pymysql.err.OperationalError: (2003, "Can\'t connect")\n\tat org'),
            "warehouse error: Can't connect. Start MariaDB, or correct FRESHET_MARIADB_HOST and FRESHET_MARIADB_PORT.",
        ),
        (RuntimeError("pymysql.err.InterfaceError: (0, '')"), "warehouse error: the connection is lost."),
        (RuntimeError(f"{SPARK}Caused by: java.io.IOException: Connection reset by peer\n"), WORKER_GONE),
        (
            RuntimeError(
                f"{SPARK}spark_apps.warehouse.bulk_load.LoadError: x is wrong\n"
                "\tSuppressed: java.io.IOException: Broken pipe\n"
            ),
            "x is wrong",
        ),
        (RuntimeError("SparkException: Python worker exited unexpectedly (crashed). Consider"), WORKER_GONE),
        (
            RuntimeError("ConnectionResetError: [Errno 104] Connection reset by peer"),
            "[Errno 104] Connection reset by peer",
        ),
        (LoadError("table 'a': out of range", "Correct it."), "table 'a': out of range. Correct it."),
        (
            RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."),
            NO_JAVA,
        ),
        (RuntimeError("\n one line \n another"), "one line"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_a_failure_is_one_line_with_what_was_raised_first(failure: Exception, line: str) -> None:
    """A failure is reported by its first exception, followed by the remedy if one is known."""
    assert one_line(failure) == line


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (LoadError("table 'a': out of range", "Correct it."), True),
        (TopicError("topic 'sales' is missing: KeyError: 'sales'", "Make it."), False),
        (pymysql.ProgrammingError(1064, "You have an error in your SQL syntax"), True),
        (KeyError("a"), True),
        (type("AnalysisException", (Exception,), {})("Failed to find data source: kafka"), True),
        (RuntimeError(f"{SPARK}Caused by: x\nspark_apps.bulk_load.LoadError: table 'a' says: out of range"), True),
        (RuntimeError(f"{SPARK}TypeError: 'NoneType' object is not callable\n\tat org.apache.spark"), True),
        (RuntimeError(f"{SPARK}AssertionError\n\tat org.apache.spark"), True),
        (RuntimeError(f"{SPARK}pyarrow.lib.ArrowInvalid: Float value 1.5 was truncated"), True),
        (RuntimeError("org.apache.hadoop.fs.ChecksumException: Checksum error: file:/offsets/7"), True),
        (RuntimeError(SPARK), False),
        (RuntimeError(f"ValueError: early\n{SPARK}"), False),
        (RuntimeError("Caused by: org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms"), False),
        (RuntimeError("Caused by: java.io.EOFException: Python worker exited unexpectedly (crashed)"), False),
        (pymysql.OperationalError(2013, "Lost connection"), False),
        (RuntimeError(f'{SPARK}pymysql.err.OperationalError: (1205, "Lock wait timeout exceeded")'), False),
    ],
    ids=str,
)
def test_what_time_does_not_cure_is_told_from_what_may_pass(failure: Exception, expected: bool) -> None:  # noqa: FBT001
    """The first exception decides: a refused value or a mistake in code is permanent, an absent service transient."""
    assert is_permanent(failure) is expected
