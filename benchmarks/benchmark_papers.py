"""The papers' main ratios in the steady state, on the clock of a modelled machine from the papers' time.

Run it with `python -m benchmarks.benchmark_papers`. The clock is computed from exact counts, so every machine prints
the same figures; `papers_clock.py` has its model.

The papers measure after a warm-up. Here a join is warm once the service rate of four rounds differs by less than 1%
from that of the four rounds before. The figure is the rate of the last four. A join that is not warm after 40 rounds is
named.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from semistream.joins import BY_NAME, CHybridJoin, SemiStreamJoin
from semistream.load_shedder import LoadShedder, UpfrontShedder
from semistream.memory_split import Shares
from semistream.page_choice import LOOKUP_POSITION, AwayFromShedding
from semistream.relation import MemoryRelation, Relation

from benchmarks.papers_clock import CountedStore, seconds
from generator.settings import StreamSettings
from generator.values import draw_ranks

ROW_BYTES = 120
BATCH = 32_768
COMPARED, MOST_ROUNDS = 4, 40  # rounds
STEADY = 0.01
WITH_SHEDDING = Shares(stream_buffer=0.3)
STREAM = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("quantity", pa.int32(), nullable=False),
    ]
)  # 20 bytes per tuple
Ratio = tuple[str, float, str]
Round = tuple[int, float]  # stream tuples that were joined, and the seconds that this took


@dataclass(frozen=True)
class Setting:
    """Sizes of an experiment.

    Attributes:
        rows: tuples of R, 120 bytes each.
        tuples: stream tuples of a round.
        page_rows: rows of a disk partition in the experiments of CHYBRIDJOIN 2017.
        large_page_rows: rows of a disk partition in the experiments of the other papers.
        block_rows: rows of a 4 KB block, which INLJ reads.
        lone_tuples: stream tuples of a round for CINLJ; for INLJ, which has nothing to warm up, a tenth of them.
    """

    rows: int = 2_000_000
    tuples: int = 1_000_000
    page_rows: int = 4_000
    large_page_rows: int = 16_000
    block_rows: int = 34
    lone_tuples: int = 30_000


def relation(setting: Setting, page_rows: int, *, by_frequency: bool) -> MemoryRelation:
    """Build R in the order of frequency, key 0 first, or in no order as in CHYBRIDJOIN 2017."""
    keys = np.arange(setting.rows)
    if not by_frequency:
        keys = np.random.default_rng(5).permutation(setting.rows)
    columns = {f"column_{i}": keys for i in range(ROW_BYTES // 8 - 1)}
    return MemoryRelation(pa.table({"id": keys, **columns}), ["id"], page_rows)


def stream(setting: Setting, skew: float, tuples: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Draw keys with any Zipf exponent, key 0 most often (HYBRIDJOIN 2011, appendix)."""
    ranks = draw_ranks(StreamSettings(keys=setting.rows, exponent=skew, seed=seed), tuples)
    for start in range(0, tuples, BATCH):
        keys = ranks[start : start + BATCH] - 1
        columns = [pa.array(keys), pa.array(keys), pa.array(keys.astype(np.int32))]
        yield pa.RecordBatch.from_arrays(columns, schema=STREAM)


def steady_rate(name: str, rounds: Iterator[Round]) -> float:
    """Run rounds until the service rate is steady, and return it: tuples per modelled second."""
    done: list[Round] = []
    for each in itertools.islice(rounds, MOST_ROUNDS):
        done.append(each)
        before = _rate(done[-2 * COMPARED : -COMPARED])
        if len(done) >= 2 * COMPARED and abs(_rate(done[-COMPARED:]) - before) < STEADY * before:
            break
    else:
        print(f"{name} is not steady after {MOST_ROUNDS} rounds", file=sys.stderr)
    return _rate(done[-COMPARED:])


def _rate(rounds: list[Round]) -> float:
    joined, took = map(sum, zip(*rounds, strict=True)) if rounds else (0, 1.0)
    return joined / took


def service_rate(  # noqa: PLR0913, PLR0917 - an experiment's parameters
    name: str,
    r: Relation,
    setting: Setting,
    share: float,
    skew: float = 1.0,
    shares: Shares | None = None,
) -> float:
    """Return the steady service rate of a join, with a share of R's size as memory."""
    join = BY_NAME[name](r, STREAM, "key", int(setting.rows * ROW_BYTES * share), shares=shares)
    tuples = {"inlj": setting.lone_tuples // 10, "cinlj": setting.lone_tuples}.get(name, setting.tuples)
    return steady_rate(f"{name}, e = {skew}", fed(join, setting, skew, tuples))


def fed(join: SemiStreamJoin, setting: Setting, skew: float, tuples: int) -> Iterator[Round]:
    """Feed a join round after round."""
    for number in itertools.count(1):
        start, before = seconds(join), join.stream_buffer.arrived - join.pending
        for batch in stream(setting, skew, tuples, number):
            join.feed(batch)
        yield join.stream_buffer.arrived - join.pending - before, seconds(join) - start


def shedding_rate(r: Relation, setting: Setting, shedder: type[LoadShedder], position: float, load: float) -> float:
    """Return the steady service rate of CHYBRIDJOIN while `load` stream tuples arrive per modelled second."""
    with tempfile.TemporaryDirectory() as directory:
        sheds = shedder(CountedStore(Path(directory), STREAM))
        join = CHybridJoin(
            r,
            STREAM,
            "key",
            int(setting.rows * ROW_BYTES * 0.1),
            how="left",
            shedder=sheds,
            page_choice=AwayFromShedding(sheds, position),
            shares=WITH_SHEDDING,
        )
        return steady_rate(f"{shedder.__name__}, position {position}", _overloaded(join, setting, load))


def _overloaded(join: CHybridJoin, setting: Setting, load: float) -> Iterator[Round]:
    """Let tuples arrive at a rate; those that the stream buffer has no room for stay in the source."""
    arrived, idle, start = 0, 0.0, seconds(join)
    for number in itertools.count(1):
        joined, before = 0, seconds(join)
        for batch in stream(setting, 1.0, setting.tuples, number):
            for piece in join.stream_buffer.pieces(batch):
                while arrived > (seconds(join) - start + idle) * load or not join.stream_buffer.has_room(piece):
                    if not join.pending and not len(join.stream_buffer):
                        idle = arrived / load - (seconds(join) - start)
                    joined += sum(rows.num_rows for rows in join.step())
                join.offer(piece)
                arrived += piece.num_rows
        yield joined, seconds(join) - before


def caching(setting: Setting) -> list[Ratio]:
    """Compare joins with and without the front stage: R in no order, memory 10% of R, e = 1.

    CHYBRIDJOIN 2017, section 5.2.
    """
    r = relation(setting, setting.page_rows, by_frequency=False)
    blocks = relation(setting, setting.block_rows, by_frequency=False)

    def gain(cached: str, plain: str, of: Relation) -> float:
        return service_rate(cached, of, setting, 0.1) / service_rate(plain, of, setting, 0.1)

    return [
        ("CHYBRIDJOIN / HYBRIDJOIN", gain("chybridjoin", "hybridjoin", r), "2.8"),
        ("CMESHJOIN / MESHJOIN", gain("cmeshjoin", "meshjoin", r), "6.5"),
        ("CINLJ / INLJ", gain("cinlj", "inlj", blocks), "2.5"),
    ]


def little_memory(setting: Setting) -> list[Ratio]:
    """Compare MESHJOIN with and without the front stage, memory 1% of R (CHYBRIDJOIN 2017, section 5.2)."""
    r = relation(setting, setting.page_rows, by_frequency=False)
    fewer = replace(setting, tuples=setting.tuples // 10)  # each takes long
    ratio = service_rate("cmeshjoin", r, fewer, 0.01) / service_rate("meshjoin", r, fewer, 0.01)
    return [("CMESHJOIN / MESHJOIN, memory 1% of R", ratio, "4")]


def shedding(setting: Setting) -> list[Ratio]:
    """Compare ways to shed while three times as many tuples arrive as CHYBRIDJOIN can join.

    CHYBRIDJOIN 2017, section 5.3. With R in the order of frequency the rate varies much from page to page, so a round
    has twice as many tuples as in the other experiments.
    """
    longer = replace(setting, tuples=2 * setting.tuples)
    ratios: list[Ratio] = []
    for order in ("no order", "order of frequency"):
        r = relation(setting, setting.page_rows, by_frequency=order == "order of frequency")
        load = 3 * service_rate("chybridjoin", r, setting, 0.1, shares=WITH_SHEDDING)
        tuned, untuned = (shedding_rate(r, longer, LoadShedder, position, load) for position in (LOOKUP_POSITION, 0.0))
        if not ratios:
            upfront = shedding_rate(r, longer, UpfrontShedder, 0.0, load)
            ratios.append(("considered / upfront shedding", tuned / upfront, "3.1"))
        ratios.append((f"tuned / untuned, R in {order}", tuned / untuned, "1.33"))
    return ratios


def family(setting: Setting) -> list[Ratio]:
    """Compare MESHJOIN, HYBRIDJOIN and its successors: R in the order of frequency, memory 50 MB for 240 MB.

    A join without a cache reads the rare pages at about the same time, again and again: its rate rises and falls over
    some millions of tuples. So a round has five times as many as in the other experiments.
    """
    setting = replace(setting, tuples=5 * setting.tuples)
    r = relation(setting, setting.large_page_rows, by_frequency=True)
    names = ("meshjoin", "r_meshjoin", "hybridjoin", "x_hybridjoin", "optimised_x_hybridjoin")
    mesh, r_mesh, hybrid, x, optimised = [service_rate(name, r, setting, 50 / 240) for name in names]
    page, memory = setting.large_page_rows * (ROW_BYTES + 8), setting.rows * ROW_BYTES * 50 / 240
    one_page = Shares(front_stage=page / (memory - page))
    equal_parts = service_rate("x_hybridjoin", r, setting, 50 / 240, shares=one_page)
    uniform, half = (
        [service_rate(name, r, setting, 50 / 240, skew=skew) for name in ("meshjoin", "hybridjoin")]
        for skew in (0.0, 0.5)
    )
    return [
        ("R-MESHJOIN / MESHJOIN", r_mesh / mesh, "slightly above 1"),
        ("HYBRIDJOIN / MESHJOIN, e = 1", hybrid / mesh, "above 1"),
        ("X-HYBRIDJOIN, equal parts / HYBRIDJOIN", equal_parts / hybrid, "1.4 to 2"),
        ("X-HYBRIDJOIN, 15% kept / HYBRIDJOIN", x / hybrid, "tuned, above that"),
        ("Optimised X- / X-HYBRIDJOIN", optimised / x, "above 1"),
        ("MESHJOIN / HYBRIDJOIN, e = 0", uniform[0] / uniform[1], "above 1"),
        ("HYBRIDJOIN / MESHJOIN, e = 0.5", half[1] / half[0], "above 1"),
    ]


def few_waiting(setting: Setting) -> list[Ratio]:
    """Compare HYBRIDJOIN with MESHJOIN when about four tuples wait per page and a seek takes longer than a transfer."""
    r = relation(setting, setting.page_rows, by_frequency=True)

    def ratio(skew: float) -> float:
        mesh, hybrid = (service_rate(name, r, setting, 0.0066, skew) for name in ("meshjoin", "hybridjoin"))
        return hybrid / mesh

    return [
        ("HYBRIDJOIN / MESHJOIN, few wait, e = 0", ratio(0.0), "below 1"),
        ("HYBRIDJOIN / MESHJOIN, few wait, e = 1", ratio(1.0), "above 1"),
    ]


def main() -> None:
    """Print each ratio beside the paper's, and the time that each experiment takes."""
    setting = Setting()
    few = Setting(rows=400_000, tuples=20_000, page_rows=2_000)
    print(f"{'ratio of service rates':40} {'here':>6}  paper")
    for experiment in (caching, little_memory, shedding, family, few_waiting):
        start = time.monotonic()
        for name, ratio, paper in experiment(few if experiment is few_waiting else setting):
            print(f"{name:40} {ratio:6.2f}  {paper}", flush=True)
        print(f"    {experiment.__name__}: {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
