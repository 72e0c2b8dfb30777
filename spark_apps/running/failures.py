"""What went wrong, in one line that a person can act on."""

from __future__ import annotations

import re

import pymysql

_ADVICE = {
    1044: "Correct FRESHET_DATABASE.",
    1045: "Correct FRESHET_LOADER_PASSWORD.",
    1049: "The Dag prepare_warehouse makes it; or correct FRESHET_DATABASE.",
    1146: "The Dag prepare_warehouse makes tables.",
    2003: "Start it, or correct FRESHET_MARIADB_HOST and FRESHET_MARIADB_PORT.",
}
# What the warehouse refuses, and mistakes of our own: trying again may help once, not for ever.
_LASTING = {
    "LoadError", "ChecksumException", "DataError", "IntegrityError", "NotSupportedError", "ProgrammingError",
    "ArrowInvalid", "ArrowNotImplementedError", "ArrowTypeError",
    "AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "NotImplementedError", "OverflowError",
    "RecursionError", "TypeError", "TypingError", "UnboundLocalError", "UnicodeDecodeError", "UnicodeEncodeError",
    "ValueError", "ZeroDivisionError",
}  # fmt: skip
_RAISED = re.compile(r"^(?:Caused by: )?(?:\w+\.)*(\w+(?:Error|Exception)|Arrow\w+)(?:: (.+))?$", re.MULTILINE)
# How Python shows an error of pymysql's: the server's number of it, and its text.
_SERVER_SAYS = re.compile(r"""\((\d+), (['"])(.*)\2\)""")
# How Spark tells, in the words of the network, that a worker is no longer there.
_WORKER_GONE = re.compile(
    r"Python worker exited unexpectedly|java\.(?:io\.IO|net\.Socket)Exception: (?:Connection reset|Broken pipe)"
)


def lasts(failure: Exception) -> bool:
    """Tell whether time alone will hardly cure a failure: it is about what was to be done, not about who was away."""
    first = (type(failure).__name__, "")
    return (_raised(failure) or [first])[-1][0] in _LASTING


def reason(failure: Exception) -> str:
    """Say what a failure says, and what to do about it where that is known.

    Spark's text begins with what Spark was doing and has whole stack traces: what was raised first of all is last.
    """
    if isinstance(failure, pymysql.MySQLError):
        return _of_warehouse(*((failure.args[0], failure.args[-1]) if failure.args else (0, "")))
    if _WORKER_GONE.search(str(failure)) and not lasts(failure):
        return "a Python worker has ended in the midst of its work: it was killed, or the machine had no memory left."
    raised = [line for _, line in _raised(failure)]
    if raised and (said := _SERVER_SAYS.fullmatch(raised[-1])):
        return _of_warehouse(int(said[1]), said[3])
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return next((line for line in (*raised[-1:], *lines)), type(failure).__name__)


def _of_warehouse(number: int, text: str) -> str:
    return f"the warehouse says: {text or 'it broke off'}. {_ADVICE.get(number, '')}".strip()


def _raised(failure: Exception) -> list[tuple[str, str]]:
    """Find the exceptions that a failure's text tells of: the class and the line of each, or the class twice."""
    found = [(kind, line.strip() or kind) for kind, line in _RAISED.findall(str(failure))]
    return [each for each in found if not each[1].startswith("Traceback (")]  # Spark's own, around that of a worker
