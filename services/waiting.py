"""Wait for a condition, not for a fixed time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from foundation.errors import NotInTimeError

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_SECONDS = 0.25
HEARTBEAT_SECONDS = 5.0


def wait_until(  # noqa: PLR0913  # all by name
    met: Callable[[], str | None],
    *,
    what: str,
    seconds: float,
    pause: float = PAUSE_SECONDS,
    remedy: str = "See which service is not healthy: make status",
    report: Callable[[str], None] = lambda _line: None,
) -> float:
    """Wait until `met` returns None, and return the seconds that took.

    Args:
        met: returns None if the condition holds, else what is still missing: the obstacle.
        what: the condition in words, for the reports and the error.
        seconds: the longest wait.
        pause: seconds between two checks.
        remedy: the next step that the error names.
        report: gets a line every few seconds.

    Raises:
        NotInTimeError: the condition did not hold within `seconds`.
    """
    started = time.monotonic()
    next_report = started + HEARTBEAT_SECONDS
    while (obstacle := met()) is not None:
        now = time.monotonic()
        if now - started > seconds:
            raise NotInTimeError(f"waited {seconds:.0f} s for {what}, and still: {obstacle}", remedy)
        if now >= next_report:
            report(f"    ... {what}: {obstacle} ({now - started:.0f} s)")
            next_report += HEARTBEAT_SECONDS
        time.sleep(pause)
    return time.monotonic() - started
