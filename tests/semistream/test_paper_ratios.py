"""The order of the papers' joins on the modelled disk, at a fraction of the benchmark's size."""

import pytest

from benchmarks.benchmark_papers import Ratio, Setting, caching, family, few_waiting, shedding

SMALL = Setting(rows=200_000, tuples=250_000, page_rows=2_000, lone_tuples=5_000)
FEW_WAIT = Setting(rows=400_000, tuples=20_000, page_rows=2_000)
WITH_LARGE_PAGES = Setting(rows=800_000, tuples=800_000)


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
