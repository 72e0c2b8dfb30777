"""What may pass is tried again for ever, what lasts a few times."""

from __future__ import annotations

import pytest

from foundation.errors import GaveUpError, LoadError, TopicError
from spark_apps.running.retry import MOST_TRIES, Retry

PASSING = TopicError("no broker answers", "Start it.")
LASTING = LoadError("table 'a': out of range", "Correct the column.")


def test_pauses_double_up_to_half_a_minute() -> None:
    """And begin again after a batch that was done."""
    retry = Retry()
    assert [retry.pause_after(PASSING, progress=False) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert retry.pause_after(PASSING, progress=True) == 1
    assert retry.pause_after(PASSING, progress=False) == 2


def test_what_lasts_is_given_up_with_what_to_do() -> None:
    """The reason, how often it was tried, and that nothing is lost."""
    retry = Retry()
    for _ in range(MOST_TRIES - 1):
        retry.pause_after(LASTING, progress=False)
    with pytest.raises(GaveUpError) as caught:
        retry.pause_after(LASTING, progress=False)
    assert str(caught.value) == (
        "table 'a': out of range. Correct the column. It failed so 4 times: this does not pass by itself. "
        "Correct it and start again; nothing is lost, it goes on where it was."
    )


def test_progress_and_what_passes_reset_the_tries() -> None:
    """Only failures in a row that last count."""
    retry = Retry()
    for failure, progress in [(LASTING, False)] * 3 + [(PASSING, False)] + [(LASTING, False)] * 3 + [(LASTING, True)]:
        retry.pause_after(failure, progress=progress)


def test_a_query_that_ended_well_keeps_the_tries() -> None:
    """The catch-up query may have skipped the batch that failed."""
    retry = Retry()
    for _ in range(MOST_TRIES - 1):
        retry.pause_after(LASTING, progress=False)
    retry.query_ended_well()
    with pytest.raises(GaveUpError):
        retry.pause_after(LASTING, progress=False)
    retry = Retry()
    retry.pause_after(PASSING, progress=False)
    retry.query_ended_well()
    assert retry.pause_after(PASSING, progress=False) == 1
