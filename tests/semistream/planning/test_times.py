"""The times that the models predict are those that tuples take, on the clock of the modelled machine."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from semistream.joins import BY_NAME, SemiStreamJoin
from semistream.memory_split import Shares
from semistream.planning import Plan, Prediction, Workload, predict
from semistream.planning.predict import JOINS
from semistream.planning.times import processing_percentile, waiting_seconds

from benchmarks.benchmark_papers import ROW_BYTES, STREAM, Setting, relation, stream
from benchmarks.papers_clock import seconds

ROWS, PAGE_ROWS = 60_000, 500
SETTING = Setting(rows=ROWS)
MEMORY = ROWS * ROW_BYTES // 10
ROUNDS = 25  # fillings of H_S; a front stage matches more
LONE = 20_000  # tuples for joins that read a page for each
CASES = [("none", 0.0), ("none", 1.0), ("frequency", 1.0)]


def processing_times(join: SemiStreamJoin, exponent: float) -> np.ndarray:
    """Return the processing times of the second half of a stream whose tuples are always there, sorted."""
    tuples = LONE if join.waiting.slots == 1 else ROUNDS * join.waiting.slots
    loaded, matched = np.zeros(tuples), np.zeros(tuples)
    for batch in stream(SETTING, exponent, tuples, seed=1):
        for piece in join.stream_buffer.pieces(batch):
            while not join.stream_buffer.has_room(piece):
                iterate(join, loaded, matched)
            join.offer(piece)
    oldest = [*join.waiting.rows.identify(join.waiting.queue.oldest(1)), join.stream_buffer.oldest][0]
    return np.sort((matched - loaded)[tuples // 2 : oldest])  # those before it have all left


def iterate(join: SemiStreamJoin, loaded: np.ndarray, matched: np.ndarray) -> None:
    """Run an iteration, and note when tuples were loaded and when they met their row."""
    start, first = seconds(join), join.stream_buffer.oldest
    join._stream_phase()  # noqa: SLF001 - the first half of a step
    loaded[first : join.stream_buffer.oldest] = start
    note(join, matched, start)  # what the front stage matches takes no time
    join._disk_phase()  # noqa: SLF001 - the second half
    note(join, matched, seconds(join))


def note(join: SemiStreamJoin, matched: np.ndarray, now: float) -> None:
    """Note the time of all output since the last call."""
    for numbers, _ in join._output.drain():  # noqa: SLF001 - what a step returns
        matched[numbers] = now


def planned(name: str, order: str, exponent: float) -> tuple[Prediction, SemiStreamJoin]:
    """Return a prediction, and the join that it is for; it outputs pairs, so that each tuple has its number."""
    workload = replace(Workload.of_the_papers(ROWS, exponent, order), output="pairs")  # type: ignore[arg-type]
    found = predict(Plan(name, MEMORY, PAGE_ROWS), workload)
    r = relation(SETTING, PAGE_ROWS, by_frequency=order == "frequency")
    return found, BY_NAME[name](r, STREAM, "key", MEMORY, output="pairs")


@pytest.mark.parametrize(("order", "exponent"), CASES)
@pytest.mark.parametrize("name", JOINS)
def test_the_predicted_processing_time_is_the_measured_one(name: str, order: str, exponent: float) -> None:
    """Mean, median, 99th percentile and longest time from loading to matching are within a tenth of the longest."""
    found, join = planned(name, order, exponent)
    times = processing_times(join, exponent)
    measured = [times.mean(), *np.quantile(times, [0.5, 0.99]), times[-1]]
    percentiles = [processing_percentile(found, part) for part in (0.5, 0.99)]
    predicted = [found.processing_seconds, *percentiles, found.longest_seconds]
    assert predicted == pytest.approx(measured, abs=0.1 * measured[-1])


@pytest.mark.parametrize("name", ["meshjoin", "hybridjoin", "chybridjoin"])
def test_a_tuple_waits_for_at_most_w_over_lambda_on_average(name: str) -> None:
    """At half of the service rate the mean wait in the stream buffer is at most w / lambda: two iterations.

    Where more arrive than are joined, the buffer never empties: the waiting time has no end.
    """
    found, join = planned(name, "none", 1.0)
    assert waiting_seconds(found, found.rate / 2) == pytest.approx(2 * found.iteration_seconds)
    assert 0 < mean_wait(join, found.rate / 2) <= waiting_seconds(found, found.rate / 2)
    assert waiting_seconds(found, 1.1 * found.rate) == math.inf


def mean_wait(join: SemiStreamJoin, arrivals: float) -> float:
    """Let tuples arrive at a rate on the clock; return the mean time from arrival to loading, once the join is warm."""
    tuples = 10 * join.waiting.slots
    batch = pa.Table.from_batches(stream(SETTING, 1.0, tuples, seed=1)).combine_chunks().to_batches()[0]
    waits, idle = [], 0.0
    while (first := join.stream_buffer.arrived) < tuples:
        now = seconds(join) + idle
        arrived = batch.slice(first, min(max(int(now * arrivals) - first, 0), join.stream_buffer.chunk_rows))
        if not arrived.num_rows:
            idle += 1 / arrivals
        elif join.stream_buffer.has_room(arrived):
            join.offer(arrived)
        loaded = join.stream_buffer.oldest
        join.step()
        waits.append(now - np.arange(loaded, join.stream_buffer.oldest) / arrivals)
    return float(np.concatenate(waits)[tuples // 2 :].mean())


@example("chybridjoin", 6_275_122, 1, 0.5, 0.0, "frequency")  # the cache holds all of R
@given(
    name=st.sampled_from(sorted(JOINS)), memory=st.integers(200_000, 10**7), page_rows=st.integers(1, 5000),
    share=st.floats(0, 0.9), exponent=st.floats(0, 2), order=st.sampled_from(["frequency", "none"]),
)  # fmt: skip
def test_times_keep_the_laws(name: str, memory: int, page_rows: int, share: float, exponent: float, order: str) -> None:
    """For any plan: percentiles rise from 0 to the longest time, and their mean is the mean processing time."""
    workload = Workload.of_the_papers(ROWS, exponent, order)  # type: ignore[arg-type]
    try:
        found = predict(Plan(name, memory, page_rows, Shares(front_stage=share)), workload)
    except ValueError:  # the parts do not fit
        return
    parts = (np.arange(20_000) + 0.5) / 20_000
    times = [processing_percentile(found, float(part)) for part in parts]
    assert times == sorted(times)
    assert times[-1] <= found.longest_seconds * (1 + 1e-9)
    assert np.mean(times) == pytest.approx(found.processing_seconds, rel=1e-3, abs=1e-3 * found.longest_seconds)


def explained(*words: str) -> subprocess.CompletedProcess[str]:
    """Plan a small join on the command line."""
    command = [sys.executable, "-m", "semistream", "explain", "--rows", "60000", "--memory", "1MB", "--papers", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_explain_has_waiting_times_if_it_is_told_the_arrivals() -> None:
    """With `--arrivals` text and JSON have w / lambda, and say which joins are too slow; without, they have neither."""
    assert "waiting time" not in explained().stdout
    text = explained("--arrivals", "20000").stdout
    assert "Arrivals: 20,000 tuples/s." in text
    assert "too slow" in next(line for line in text.splitlines() if line.startswith("INLJ "))
    joins = json.loads(explained("--arrivals", "20000", "--json").stdout)["joins"]
    assert joins["inlj"]["waiting_seconds"] is None
    mesh = joins["meshjoin"]
    assert mesh["waiting_seconds"] == pytest.approx(mesh["tuples"] / 20_000)
    assert 0 < mesh["processing_p50_seconds"] < mesh["processing_p99_seconds"] <= mesh["longest_seconds"]
    assert "waiting_seconds" not in json.loads(explained("--json").stdout)["joins"]["meshjoin"]
    wrong = explained("--arrivals", "0")
    assert wrong.returncode != 0
    assert "must be tuples a second, more than 0, got '0'" in wrong.stderr
