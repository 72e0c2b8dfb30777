"""Zipf's law as the plans know it is the law by which the generator draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from semistream.planning import Skew

from generator.settings import StreamSettings
from generator.values import draw_ranks

ROWS = st.integers(1, 10**8)
EXPONENT = st.sampled_from([0.0, 0.5, 0.9999, 1.0, 1.0001, 1.5]) | st.floats(0, 3)


@given(rows=ROWS, exponent=EXPONENT)
def test_the_head_grows_from_nothing_to_all(rows: int, exponent: float) -> None:
    """No rank has no share, all ranks have the whole stream, and a longer head never has less."""
    heads = Skew(rows, exponent).head(np.linspace(0, rows, 50))
    assert heads[0] == 0
    assert heads[-1] == pytest.approx(1)
    assert (np.diff(heads) >= 0).all()


@given(rows=st.integers(2, 10**6))
def test_known_laws(rows: int) -> None:
    """For e = 0 a head has its share of the rows; for e = 1 that of the logarithms (Optimised X-HYBRIDJOIN, eq. 4)."""
    half = np.array([rows // 2])
    assert Skew(rows, 0.0).head(half)[0] == pytest.approx(rows // 2 / rows)
    assert Skew(rows, 1.0).head(half)[0] == pytest.approx(math.log(rows // 2 + 1) / math.log(rows + 1))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.3])
def test_the_generator_draws_by_it(exponent: float) -> None:
    """The share of a head among 200,000 drawn ranks is the predicted one, to four standard deviations."""
    rows, drawn = 10_000, 200_000
    ranks = draw_ranks(StreamSettings(keys=rows, exponent=exponent, seed=3), drawn)
    for head in (1, 10, 1000, 5000):
        share = float(Skew(rows, exponent).head(np.array([head]))[0])
        found = np.count_nonzero(ranks <= head) / drawn
        assert abs(found - share) < 4 * math.sqrt(share * (1 - share) / drawn) + 1e-9


@pytest.mark.parametrize(("rows", "exponent"), [(0, 1.0), (10, -0.1)])
def test_wrong_parameters_are_refused(rows: int, exponent: float) -> None:
    """No rows, or a negative exponent, is refused with what was given."""
    with pytest.raises(ValueError, match=f"got {rows} and {exponent}"):
        Skew(rows, exponent)
