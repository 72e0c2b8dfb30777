"""A failure in one line that a person can act on, and whether a retry can help.

Freshet's own errors know both (foundation/errors.py), also when they come back from a worker as text. Foreign errors
that cross the JVM are text only; a table of names says which of those are permanent.
"""

from __future__ import annotations

import re

import pymysql

from foundation import errors
from foundation.errors import FreshetError, PermanentError

_ADVICE = {
    1044: "Correct FRESHET_DATABASE.",
    1045: "Correct FRESHET_LOADER_PASSWORD.",
    1049: "Correct FRESHET_DATABASE, or run `make up`, which creates the schema.",
    1054: "Run the pipeline's Dag prepare, which brings tables to this version.",
    1146: "Run the pipeline's Dag prepare, which creates missing tables.",
    2003: "Start MariaDB, or correct FRESHET_MARIADB_HOST and FRESHET_MARIADB_PORT.",
}
_PERMANENT = (
    PermanentError, pymysql.DataError, pymysql.IntegrityError, pymysql.NotSupportedError, pymysql.ProgrammingError,
    ArithmeticError, AssertionError, AttributeError, LookupError, NameError, NotImplementedError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip
# Names of permanent errors, these and others, in text that comes through the JVM.
_FOREIGN_PERMANENT = {
    "AnalysisException", "ChecksumException", "DataError", "IntegrityError", "NotSupportedError", "ProgrammingError",
    "ArrowInvalid", "ArrowNotImplementedError", "ArrowTypeError",
    "AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "NotImplementedError", "OverflowError",
    "RecursionError", "TypeError", "TypingError", "UnboundLocalError", "UnicodeDecodeError", "UnicodeEncodeError",
    "ValueError", "ZeroDivisionError",
}  # fmt: skip
_FOREIGN_ADVICE = {
    "JAVA_GATEWAY_EXITED": "Spark's JVM did not start: Java 17 or newer must be on the PATH. See: java -version",
    "Failed to find data source: kafka": "Submit the program with the connector's jars, as the Dag does.",
}
_RAISED = re.compile(r"^(?:Caused by: )?(?:\w+\.)*(\w+(?:Error|Exception)|Arrow\w+)(?:: (.+))?$", re.MULTILINE)
# How Python prints an error of pymysql: the server's error number and text.
_SERVER_SAYS = re.compile(r"""\((\d+), (['"])(.*)\2\)""")
# How Spark reports a worker that has died: sometimes as an error of its network connection.
_WORKER_GONE = re.compile(
    r"Python worker exited unexpectedly|java\.(?:io\.IO|net\.Socket)Exception: (?:Connection reset|Broken pipe)"
)


def is_permanent(failure: Exception) -> bool:
    """Return True if a retry cannot help: the work is invalid, no service is down."""
    raised = _raised(failure)
    if not raised and isinstance(failure, _PERMANENT):
        return True
    name = raised[-1][0] if raised else type(failure).__name__
    ours = getattr(errors, name, None)
    return issubclass(ours, PermanentError) if ours else name in _FOREIGN_PERMANENT


def one_line(failure: Exception) -> str:
    """Return the failure's message, and what to do about it where that is known.

    Spark's text begins with what Spark was doing and contains whole stack traces. The original error is at the end.
    """
    if isinstance(failure, FreshetError):
        return str(failure)
    if isinstance(failure, pymysql.MySQLError):
        return _of_warehouse(*((failure.args[0], failure.args[-1]) if failure.args else (0, "")))
    if _WORKER_GONE.search(str(failure)) and not is_permanent(failure):
        return "a Python worker died in the middle of its work: it was killed, or the machine had no memory left."
    raised = [line for _, line in _raised(failure)]
    if raised and (said := _SERVER_SAYS.fullmatch(raised[-1])):
        return _of_warehouse(int(said[1]), said[3])
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    line = next((line for line in (*raised[-1:], *lines)), type(failure).__name__)
    return next((f"{line.rstrip('.')}. {advice}" for words, advice in _FOREIGN_ADVICE.items() if words in line), line)


def _of_warehouse(number: int, text: str) -> str:
    return f"warehouse error: {text or 'the connection is lost'}. {_ADVICE.get(number, '')}".strip()


def _raised(failure: Exception) -> list[tuple[str, str]]:
    """Return the class and the message of each error in a failure's text; if it has no message, the class twice."""
    if isinstance(failure, FreshetError):
        return []
    found = [(kind, line.strip() or kind) for kind, line in _RAISED.findall(str(failure))]
    return [each for each in found if not each[1].startswith("Traceback (")]  # Spark's own, around a worker's error
