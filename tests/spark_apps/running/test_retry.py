"""A transient failure is retried without limit, a permanent one a few times."""

from __future__ import annotations

import pytest

from foundation.errors import GaveUpError, LoadError, TopicError
from spark_apps.running.retry import MOST_TRIES, Retry

TRANSIENT = TopicError("no broker answers", "Start it.")
PERMANENT = LoadError("table 'a': out of range", "Correct the column.")


def test_pauses_double_up_to_half_a_minute() -> None:
    """Pauses double up to half a minute, and are short again after a successful batch."""
    retry = Retry()
    assert [retry.pause_after(TRANSIENT, progress=False) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert retry.pause_after(TRANSIENT, progress=True) == 1
    assert retry.pause_after(TRANSIENT, progress=False) == 2


def test_a_permanent_failure_is_given_up_with_what_to_do() -> None:
    """The final error has the reason, the number of attempts, and that no event is lost."""
    retry = Retry()
    for _ in range(MOST_TRIES - 1):
        retry.pause_after(PERMANENT, progress=False)
    with pytest.raises(GaveUpError) as caught:
        retry.pause_after(PERMANENT, progress=False)
    assert str(caught.value) == (
        "table 'a': out of range. Correct the column. It failed 4 times: time does not cure it. "
        "Correct the cause and start again; nothing is lost, the application continues where it was."
    )


def test_progress_and_transient_failures_reset_the_tries() -> None:
    """Only consecutive permanent failures count as tries."""
    retry = Retry()
    for failure, progress in (
        [(PERMANENT, False)] * 3 + [(TRANSIENT, False)] + [(PERMANENT, False)] * 3 + [(PERMANENT, True)]
    ):
        retry.pause_after(failure, progress=progress)


def test_a_query_that_ended_well_keeps_the_tries() -> None:
    """A query that ends without an error keeps the number of tries: it may have skipped the batch that failed."""
    retry = Retry()
    for _ in range(MOST_TRIES - 1):
        retry.pause_after(PERMANENT, progress=False)
    retry.query_ended_well()
    with pytest.raises(GaveUpError):
        retry.pause_after(PERMANENT, progress=False)
    retry = Retry()
    retry.pause_after(TRANSIENT, progress=False)
    retry.query_ended_well()
    assert retry.pause_after(TRANSIENT, progress=False) == 1
