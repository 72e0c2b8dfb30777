"""The retry of a query: whether to try again after a failure, and after what pause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundation.errors import GaveUpError
from spark_apps.running.failures import is_permanent, one_line

if TYPE_CHECKING:
    from typing import NoReturn

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
MOST_TRIES = 4  # of a permanent failure


class Retry:
    """Counts consecutive failures.

    A transient failure is retried for ever, with pauses that double up to 30 s. A permanent failure is tried
    four times: the first one might be a batch that was planned with other master data.
    """

    def __init__(self) -> None:
        self._pause = FIRST_PAUSE_SECONDS
        self._tries = 0

    def pause_after(self, failure: Exception, *, progress: bool) -> float:
        """Return how many seconds to wait before the next try.

        Args:
            failure: what went wrong.
            progress: a batch was done since the last failure.

        Raises:
            GaveUpError: the failure is permanent and was tried often enough.
        """
        if progress:
            self._pause, self._tries = FIRST_PAUSE_SECONDS, 0
        self._tries = self._tries + 1 if is_permanent(failure) else 0
        if self._tries == MOST_TRIES:
            self._give_up(failure)
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        return pause

    def query_ended_well(self) -> None:
        """Reset the pause. Keep the number of tries: the catch-up query might have skipped the batch that failed."""
        self._pause = FIRST_PAUSE_SECONDS

    def _give_up(self, failure: Exception) -> NoReturn:
        raise GaveUpError(
            f"{one_line(failure).rstrip('.')}. It failed {MOST_TRIES} times: time does not cure it",
            "Correct the cause and start again; nothing is lost, the application continues where it was.",
        ) from failure
