"""The pictures: they exist, are small enough for the README, and the fitted exponent is the stream's."""

from pathlib import Path

import numpy as np
import pytest

from generator import StreamSettings
from generator.__main__ import main
from generator.plot import fitted_exponent
from generator.values import draw_ranks

PNG = b"\x89PNG\r\n\x1a\n"


def test_plot_draws_both_figures(tmp_path: Path) -> None:
    """Two PNG files of less than 150 KB each."""
    assert main(["plot", "--folder", str(tmp_path), "--keys", "5000"]) == 0
    for name in ("skew.png", "bursts.png"):
        picture = (tmp_path / name).read_bytes()
        assert picture.startswith(PNG)
        assert 10_000 < len(picture) < 150_000


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.3])
def test_fitted_exponent_is_the_streams(exponent: float) -> None:
    """The line in the picture has the slope that the stream was asked for."""
    ranks = draw_ranks(StreamSettings(keys=100_000, exponent=exponent, seed=1), 5_000_000)
    assert fitted_exponent(np.bincount(ranks, minlength=100_001)[1:].astype(float)) == pytest.approx(exponent, abs=0.01)
