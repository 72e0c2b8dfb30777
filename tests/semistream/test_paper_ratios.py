"""The order of the papers' joins on the modelled disk, at a fraction of the benchmark's size."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from semistream import CHybridJoin, LoadShedder, ShedStore, UpfrontShedder
from semistream.modelled_disk import DISK_7200_RPM
from semistream.relation import MemoryRelation

from benchmarks.benchmark_papers import (
    COMPARED,
    MOST_ROUNDS,
    STREAM,
    Ratio,
    Round,
    Setting,
    caching,
    family,
    few_waiting,
    shedding,
    steady_rate,
    stream,
)
from benchmarks.papers_clock import OUTPUT, READ, CountedStore, seconds

SMALL = Setting(rows=200_000, tuples=60_000, page_rows=2_000, lone_tuples=2_000)
FEW_WAIT = Setting(rows=400_000, tuples=10_000, page_rows=2_000)
WITH_LARGE_PAGES = Setting(rows=800_000, tuples=50_000)


def _ratios(rows: list[Ratio]) -> dict[str, float]:
    return {name: ratio for name, ratio, _ in rows}


def test_the_front_stage_pays_on_a_skewed_stream() -> None:
    """Each join is much faster with the front stage than without it."""
    ratio = _ratios(caching(SMALL))
    assert ratio["CHYBRIDJOIN / HYBRIDJOIN"] > 1.7
    assert ratio["CMESHJOIN / MESHJOIN"] > 1.7
    assert ratio["CINLJ / INLJ"] > 1.7


def test_shedding_after_considering_beats_shedding_upfront() -> None:
    """Tuples that were considered and not joined are the expensive ones: to shed them raises the service rate.

    The look-up position hardly matters here; docs/joins.md says why.
    """
    ratio = _ratios(shedding(SMALL))
    assert ratio["considered / upfront shedding"] > 2
    assert ratio["tuned / untuned, R in no order"] == pytest.approx(1, abs=0.07)
    assert ratio["tuned / untuned, R in order of frequency"] == pytest.approx(1.02, abs=0.05)


def test_each_refinement_of_hybridjoin_is_faster_than_the_one_before() -> None:
    """MESHJOIN, HYBRIDJOIN, X-HYBRIDJOIN, Optimised X-HYBRIDJOIN: each is faster than the one before at e = 1."""
    ratio = _ratios(family(WITH_LARGE_PAGES))
    assert ratio["HYBRIDJOIN / MESHJOIN, e = 1"] > 1
    assert ratio["X-HYBRIDJOIN, 15% kept / HYBRIDJOIN"] > 1.2
    assert ratio["Optimised X- / X-HYBRIDJOIN"] > 1
    assert ratio["R-MESHJOIN / MESHJOIN"] == pytest.approx(1, abs=0.05)


def test_where_few_tuples_wait_for_a_page_skew_decides_between_meshjoin_and_hybridjoin() -> None:
    """If a seek takes longer than a transfer, MESHJOIN is faster at e = 0 and HYBRIDJOIN at e = 1."""
    ratio = _ratios(few_waiting(FEW_WAIT))
    assert ratio["HYBRIDJOIN / MESHJOIN, few wait, e = 0"] < 0.9
    assert ratio["HYBRIDJOIN / MESHJOIN, few wait, e = 1"] > 1


@pytest.mark.parametrize("skew", [0.0, 0.25, 0.5, 0.75])
def test_the_stream_takes_any_exponent(skew: float) -> None:
    """The first hundredth of the keys gets the share of the tuples that the integral of x^-e gives it."""
    setting = Setting(rows=100_000)
    keys = np.concatenate([batch["key"].to_numpy() for batch in stream(setting, skew, 200_000, seed=1)])
    assert keys.min() >= 0
    assert keys.max() < setting.rows
    share = ((setting.rows / 100 + 1) ** (1 - skew) - 1) / ((setting.rows + 1) ** (1 - skew) - 1)
    assert np.mean(keys < setting.rows // 100) == pytest.approx(share, abs=0.005)


def _rounds(rates: Iterator[float]) -> Iterator[Round]:
    return ((int(1000 * rate), 1000.0) for rate in rates)


def test_a_rate_counts_once_it_is_steady(capsys: pytest.CaptureFixture[str]) -> None:
    """Rounds of the warm-up do not count; the same number of rounds is compared before and after."""
    warming = [10.0, 10.0, 10.0, 10.0, 10.0, 20.0, 40.0, 80.0, 90.0]  # a steady start is not enough
    rounds = _rounds(itertools.chain(warming, itertools.repeat(100.0)))
    assert steady_rate("join", rounds) == 100.0
    assert next(rounds) == (100_000, 1000.0)
    assert not capsys.readouterr().err
    assert steady_rate("join", _rounds(iter(np.full(2 * COMPARED, 7.0)))) == 7.0


def test_a_rate_that_never_gets_steady_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """After the most rounds the benchmark goes on, and names the join."""
    steady_rate("join", _rounds(1.1**n for n in itertools.count()))
    assert capsys.readouterr().err == f"join is not steady after {MOST_ROUNDS} rounds\n"


def _shedding_join(store: ShedStore, kind: type[LoadShedder]) -> CHybridJoin:
    keys = np.arange(1000)
    relation = MemoryRelation(pa.table({"id": keys, "value": keys}), ["id"], page_rows=100)
    return CHybridJoin(relation, STREAM, "key", 100_000, shedder=kind(store))


def test_a_tuple_that_is_shed_unread_costs_its_reading_and_its_part_of_a_file(tmp_path: Path) -> None:
    """Nothing else of it is done, and a file costs a seek and its bytes, when it is written and when it is read."""
    store = CountedStore(tmp_path, STREAM)
    join = _shedding_join(store, UpfrontShedder)
    (batch,) = stream(Setting(rows=1000), 1.0, 50, seed=1)
    join.offer(batch)
    assert join.shedder is not None
    join.shedder.balance(0, 1.0, join.waiting, join.stream_buffer)
    shed = join.shedder.shed
    assert shed == 50
    (file,) = tmp_path.iterdir()
    disk = DISK_7200_RPM.seek + file.stat().st_size / DISK_7200_RPM.bytes_per_second
    assert seconds(join) == pytest.approx(50 * READ + disk)
    store.read(store.names[0])
    assert seconds(join) == pytest.approx(50 * READ + 2 * disk)


def test_a_tuple_that_is_shed_from_the_queue_costs_all_but_its_output(tmp_path: Path) -> None:
    """It was read, added to H_S and Q, and removed from there."""
    join = _shedding_join(CountedStore(tmp_path, STREAM), LoadShedder)
    (batch,) = stream(Setting(rows=1000), 1.0, 50, seed=1)
    join.offer(batch)
    join._stream_phase()  # noqa: SLF001 - the first half of a step
    waiting, before = join.pending, seconds(join)
    assert waiting == 50
    join.shed_all()
    disk = [DISK_7200_RPM.seek + file.stat().st_size / DISK_7200_RPM.bytes_per_second for file in tmp_path.iterdir()]
    assert seconds(join) == pytest.approx(before - waiting * OUTPUT + sum(disk))
