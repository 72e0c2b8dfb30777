"""The whole stream: limits, shares of several processes, repeatability."""

from datetime import UTC, datetime

import numpy as np
import pytest

from generator import StreamSettings
from generator.stream import Share, choose_tag, timed_chunks, unpaced_batches

START = datetime(2026, 1, 1, tzinfo=UTC)


def simulated(stream: StreamSettings, share: Share | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers, products and times of a stream with a limit."""
    chunks = [chunk.events for chunk in timed_chunks(stream, share or Share(), 0, tag=0)]
    columns = [
        np.concatenate([getattr(events, name) for events in chunks]) for name in ("numbers", "products", "sold_at")
    ]
    return columns[0], columns[1], columns[2]


def test_duration_ends_the_stream_at_its_time() -> None:
    """It has about rate times duration events, all within the duration, numbered without a gap."""
    numbers, _, times = simulated(
        StreamSettings(keys=10, rate=5000, burstiness=1, duration=20.345, simulated_from=START)
    )
    assert len(numbers) == pytest.approx(5000 * 20.345, rel=0.02)
    assert times.max() < 20_345
    assert times.max() > 20_300
    assert (np.diff(times) >= 0).all()
    np.testing.assert_array_equal(numbers, np.arange(len(numbers)))


def test_number_of_events_ends_the_stream_exactly() -> None:
    """With a schedule and without, the stream has the requested number of events."""
    for count in (0, 1, 65_536, 200_001):
        stream = StreamSettings(keys=10, rate=100_000, events=count, simulated_from=START)
        assert len(simulated(stream)[0]) == count
        assert sum(map(len, unpaced_batches(StreamSettings(keys=10, events=count), Share(), tag=0))) == count


def test_last_event_is_the_end_of_a_stream_with_a_schedule() -> None:
    """No process waits after the last event; a stream of no events ends at once."""
    for count in (0, 5, 4000):
        stream = StreamSettings(keys=10, rate=100, burstiness=1, events=count)
        chunks = [list(timed_chunks(stream, Share(index, 2), 0, tag=0)) for index in range(2)]
        latest = max((int(chunk.offsets.max(initial=0)) for part in chunks for chunk in part), default=0)
        assert [part[-1].end for part in chunks] == [latest, latest]


@pytest.mark.parametrize("processes", [2, 3, 7])
def test_shares_of_processes_are_the_one_stream(processes: int) -> None:
    """Any number of processes send together the same events at the same times."""
    stream = StreamSettings(keys=1000, rate=20_000, duration=15, seed=3, simulated_from=START)
    whole = simulated(stream)
    parts = [simulated(stream, Share(index, processes)) for index in range(processes)]
    assert max(len(part[0]) for part in parts) - min(len(part[0]) for part in parts) <= 1
    order = np.argsort(np.concatenate([part[0] for part in parts]))
    for column in range(3):
        np.testing.assert_array_equal(np.concatenate([part[column] for part in parts])[order], whole[column])


def test_unpaced_shares_are_the_one_stream() -> None:
    """Without a schedule, each event belongs to exactly one process too."""
    stream = StreamSettings(keys=1000, events=300_001, seed=3)
    numbers = [batch.numbers for index in range(3) for batch in unpaced_batches(stream, Share(index, 3), tag=0)]
    np.testing.assert_array_equal(np.sort(np.concatenate(numbers)), np.arange(300_001))


def test_tag_repeats_only_in_simulated_time() -> None:
    """A simulated run can be repeated byte by byte; two real runs share no identifier."""
    repeated = StreamSettings(keys=1, rate=1, duration=1, simulated_from=START)
    assert choose_tag(repeated) == choose_tag(repeated)
    assert choose_tag(StreamSettings(keys=1)) != choose_tag(StreamSettings(keys=1))


def test_rate_zero_passes_time_without_events() -> None:
    """A stream of rate 0 lasts for its duration and has no events."""
    chunks = list(timed_chunks(StreamSettings(keys=1, rate=0, duration=25), Share(), 0, tag=0))
    assert sum(len(chunk.events) for chunk in chunks) == 0
    assert chunks[-1].end == 25_000_000
