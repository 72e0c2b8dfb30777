"""Figures of the papers about time per tuple, repeated keys, R that grows, and what the front stage does.

Run it with `python -m benchmarks.benchmark_figures`. As in benchmark_papers.py the clock is computed from exact counts,
so every machine prints the same numbers. Sizes are those of the papers divided by 50 to 500; a memory of 10% of R stays
10%. docs/joins.md compares the numbers with the papers.
"""

import inspect
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from semistream.frequency_recorder import FrequencyRecorder
from semistream.joins import BY_NAME, SemiStreamJoin
from semistream.relation import GrowingRelation, MemoryRelation, Relation

from benchmarks.benchmark_papers import ROW_BYTES, STREAM, Setting, relation
from benchmarks.papers_clock import OUTPUT, seconds
from benchmarks.tuple_times import Keys, Summary, batches, tuple_times
from generator.settings import StreamSettings
from generator.values import draw_ranks, fill_values, recipe

PAGE_ROWS = 4_000
MEGABYTE = 1_000_000
SEED = 11


def main() -> None:
    """Print each figure's numbers below the paper's claim."""
    figures = (processing_time, waiting_time, locality, growth, thresholds, front_stage)
    for figure in figures:
        start = time.monotonic()
        print(f"\n{inspect.getdoc(figure)}")
        for line in figure():
            print(f"    {line}", flush=True)
        print(f"    ({time.monotonic() - start:.0f} s)", flush=True)


def processing_time() -> Iterator[str]:
    """HYBRIDJOIN 2011, figure 7a, and CHYBRIDJOIN 2017, figure 6: processing time against R, memory 12 MB.

    The papers: HYBRIDJOIN far below MESHJOIN; with the front stage far below without, and more so for a larger R.
    """
    for by_frequency, page_rows, names in (
        (True, Setting.large_page_rows, ("meshjoin", "hybridjoin")),
        (False, PAGE_ROWS, ("meshjoin", "cmeshjoin", "hybridjoin", "chybridjoin")),
    ):
        order = "order of frequency" if by_frequency else "no order"
        yield f"{f'R in {order}':24} {'rows':>9} {'rate':>6} {'mean':>8} {'p50':>8} {'p99':>8}   seconds"
        for rows in (500_000, 1_000_000, 2_000_000):
            r = relation(Setting(rows=rows), page_rows, by_frequency=by_frequency)
            for name in names:
                full, calm = _join(name, r, 12 * MEGABYTE), _join(name, r, 12 * MEGABYTE)
                slots = full.waiting.slots
                for rate, times in (
                    ("full", tuple_times(full, _zipf(rows), 8 * slots, 4 * slots)),
                    ("1,000", tuple_times(calm, _zipf(rows), 20_000, 20_000, 1000)),
                ):
                    yield f"{full.paper_name:24} {rows:9,} {rate:>6} {_written(Summary.of(times.processing))}"


def waiting_time() -> Iterator[str]:
    """HYBRIDJOIN 2011, figure 7b: waiting time against the arrival rate, R of 2 million rows, memory 50 MB of 240.

    The paper: MESHJOIN waits longer than HYBRIDJOIN; INLJ waits less than HYBRIDJOIN below 150 tuples/s, and longer the
    faster they come. It has w / rate for MESHJOIN, which there reads w tuples or none.
    """
    setting = Setting()
    r = relation(setting, setting.large_page_rows, by_frequency=True)
    blocks = relation(setting, setting.block_rows, by_frequency=True)
    yield f"{'join':12} {'rate':>5} {'mean':>8} {'p50':>8} {'p99':>8}   seconds, of the first 1,000 tuples"
    for rate in (60, 125, 250, 500, 1000, 2000):
        for name, of in (("meshjoin", r), ("hybridjoin", r), ("inlj", blocks)):
            join = _join(name, of, 50 * MEGABYTE)
            times = tuple_times(join, _zipf(setting.rows), 0, 1_000, rate)
            w = f"   w / rate = {join.waiting.slots // of.pages / rate:.1f}" if name == "meshjoin" else ""
            yield f"{join.paper_name:12} {rate:5} {_written(Summary.of(times.waiting))}{w}"


def locality() -> Iterator[str]:
    """CHYBRIDJOIN 2017, figure 5g: each key N times in R, and the stream in windows of 1/25 of the keys; memory 10%.

    The paper: CMESHJOIN / MESHJOIN is 6.5 for N = 1 and 10 for N = 20; both rates fall with N, that of CMESHJOIN less.
    A window lasts for R / 50 tuples there. Here CMESHJOIN gathers the rows of a key during a cycle over R, so there are
    also lines for windows of several cycles, and for one window of all keys.
    """
    rows = 200_000
    yield f"{'window':>9} {'N':>3} {'MESHJOIN':>10} {'CMESHJOIN':>10} {'ratio':>6}   tuples/s"
    for window, windows, warm, measured in (
        (rows // 50, 25, rows // 50, 24 * rows // 50),
        (rows, 25, rows, 5 * rows),
        (5 * rows, 1, 3 * rows, 2 * rows),
    ):
        for copies in (1, 10, 20):
            keys = np.random.default_rng(SEED).permutation(np.repeat(np.arange(1, rows // copies + 1), copies))
            r = MemoryRelation(_rows(keys), ["id"], PAGE_ROWS)
            draw = _windows(rows // copies, window, windows)
            plain, cached = (_rate_of_output(name, r, draw, warm, measured) for name in ("meshjoin", "cmeshjoin"))
            yield f"{window:9,} {copies:3} {plain:10,.0f} {cached:10,.0f} {cached / plain:6.2f}"


def growth() -> Iterator[str]:
    """CHYBRIDJOIN 2017, figure 9e: CMESHJOIN while R grows from 500,000 to 1 million rows, memory 12 MB.

    The paper: the rate falls, recovers when the cache is filled again, and stays below the one before, as R is larger.
    """
    rows, portion, before, after = 500_000, 100_000, 20, 60
    shuffled = np.random.default_rng(SEED).permutation
    r = GrowingRelation(_rows(shuffled(rows)), ["id"], 2 * rows, PAGE_ROWS)
    small, large = _zipf(rows), _zipf(2 * rows, shuffled(2 * rows))  # half of the frequent keys are new
    join = _join("cmeshjoin", r, 12 * MEGABYTE)
    rates, hits = [], []
    for number in range(before + after):
        if number == before:
            r.append(_rows(rows + shuffled(rows)))
        start, arrived, hit = seconds(join), join.stream_buffer.arrived - join.pending, join.front_stage.hits
        for batch in _first(portion, small if number < before else large, number * portion):
            join.feed(batch)
        rates.append((join.stream_buffer.arrived - join.pending - arrived) / (seconds(join) - start))
        hits.append((join.front_stage.hits - hit) / portion)
    yield f"{'tuples since R grew':>20} {'tuples/s':>9} {'front stage':>12}"
    for first, last in ((-5, 0), (0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (after - 10, after)):
        span = slice(before + first, before + last)
        place = f"{first * portion:,} to {last * portion:,}"
        yield f"{place:>20} {np.mean(rates[span]):9,.0f} {np.mean(hits[span]):12.0%}"


def thresholds() -> Iterator[str]:
    """CHYBRIDJOIN 2017, figure 9b: a fixed threshold and the front stage of CMESHJOIN, memory 10%.

    The paper: from 10 downwards the tuples that the front stage joins rise fast, then hardly any more.
    """
    rows = 500_000
    r = relation(Setting(rows=rows), PAGE_ROWS, by_frequency=False)
    yield f"{'threshold':>9} {'front stage':>12} {'tuples/s':>9}   of it, from 2.5 to 3 million tuples"
    for threshold in (10, 8, 6, 5, 4, 3, 2, 1):
        join = _join("cmeshjoin", r, rows * ROW_BYTES // 10)
        join.front_stage.recorder = _Fixed(join.split.cache_slots, threshold)
        _feed(join, _first(2_500_000, _zipf(rows)))
        hits, start = join.front_stage.hits, seconds(join)
        _feed(join, _first(500_000, _zipf(rows), 2_500_000))
        hit = join.front_stage.hits - hits
        yield f"{threshold:9} {hit / 500_000:12.0%} {hit / (seconds(join) - start):9,.0f}"


def front_stage() -> Iterator[str]:
    """CHYBRIDJOIN 2017, figure 9d: the share of the stream that CMESHJOIN joins in the front stage, memory 10%.

    The paper: 51% in 1,000 iterations, R of 100 million rows. Here R has 2 million rows, 500 iterations a cycle.
    """
    rows = 2_000_000
    join = _join("cmeshjoin", relation(Setting(rows=rows), PAGE_ROWS, by_frequency=False), rows * ROW_BYTES // 10)
    yield f"{'iterations':>10} {'so far':>7} {'lately':>7}"
    read, hit, arrived = [0], [0], [0]
    for batch in _first(10_000_000, _zipf(rows)):
        join.feed(batch)
        read.append(join.relation.counters.pages_read)
        hit.append(join.front_stage.hits)
        arrived.append(join.stream_buffer.arrived)
    last = 0
    for iteration in (50, 100, 200, 500, 1000, 2000, 4000, read[-1]):
        hits, tuples = np.interp([last, iteration], read, hit), np.interp([last, iteration], read, arrived)
        yield f"{iteration:10,} {hits[1] / tuples[1]:7.0%} {(hits[1] - hits[0]) / (tuples[1] - tuples[0]):7.0%}"
        last = iteration


class _Fixed(FrequencyRecorder):
    """A recorder whose threshold stays."""

    def __init__(self, slots: int, threshold: int) -> None:
        super().__init__(slots)
        self.threshold = threshold

    def adapt(self, tuples: int, *, room: bool) -> None:
        """Leave the threshold as it is."""


def _join(name: str, r: Relation, memory: int) -> SemiStreamJoin:
    return BY_NAME[name](r, STREAM, "key", memory)


def _rows(keys: np.ndarray) -> pa.Table:
    """Make rows of R, of 120 bytes."""
    return pa.table({"id": keys, **{f"column_{i}": keys for i in range(ROW_BYTES // 8 - 1)}})


def _zipf(rows: int, of_rank: np.ndarray | None = None) -> Keys:
    """Draw keys 0 to rows - 1 with e = 1, key 0 most often, or those that `of_rank` has for a rank."""

    def keys(numbers: np.ndarray) -> np.ndarray:
        ranks = draw_ranks(StreamSettings(keys=rows, exponent=1.0, seed=int(numbers[0])), len(numbers)) - 1
        return ranks if of_rank is None else of_rank[ranks]

    return keys


def _windows(keys: int, window: int, windows: int) -> Keys:
    """Draw keys 1 to `keys` with e = 1 in one window of them after the other."""
    settings = StreamSettings(keys=keys, seed=SEED, drift="windows", drift_every=window, windows=windows)
    plan = recipe(settings)

    def draw(numbers: np.ndarray) -> np.ndarray:
        products, quantities, stores = (np.empty(len(numbers), dtype=np.int64) for _ in range(3))
        fill_values(plan, numbers, products, quantities, stores, np.empty(len(numbers), dtype=np.uint8))
        return products

    return draw


def _rate_of_output(name: str, r: Relation, draw: Keys, warm: int, measured: int) -> float:
    """Return the service rate after some tuples, memory 10% of R; the clock counts the output of each row."""
    join = _join(name, r, r.row_count * ROW_BYTES // 10)
    _feed(join, _first(warm, draw))
    start, arrived = seconds(join), join.stream_buffer.arrived - join.pending
    rows = _feed(join, _first(measured, draw, warm))
    tuples = join.stream_buffer.arrived - join.pending - arrived
    return tuples / (seconds(join) - start + (rows - tuples) * OUTPUT)


def _feed(join: SemiStreamJoin, stream: Iterator[pa.RecordBatch]) -> int:
    """Feed a join; return how many rows come out."""
    return sum(rows.num_rows for batch in stream for rows in join.feed(batch))


def _first(count: int, keys: Keys, first: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield `count` tuples of a stream, from number `first` on."""
    for batch in batches(keys, first):
        yield batch.slice(0, count)
        count -= batch.num_rows
        if count <= 0:
            return


def _written(times: Summary) -> str:
    return " ".join(f"{each:8.3f}" for each in times)


if __name__ == "__main__":
    main()
