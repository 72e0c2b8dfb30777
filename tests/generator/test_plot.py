"""`plot` writes pictures of bounded size with the fitted exponent."""

from pathlib import Path

import numpy as np
import pytest

from generator import StreamSettings
from generator.__main__ import main
from generator.plot import fitted_exponent
from generator.values import draw_ranks

PNG = b"\x89PNG\r\n\x1a\n"


def test_plot_draws_both_figures(tmp_path: Path) -> None:
    """`plot` writes two PNG files of less than 150 KB each."""
    assert main(["plot", "--folder", str(tmp_path), "--keys", "5000"]) == 0
    for name in ("skew.png", "bursts.png"):
        picture = (tmp_path / name).read_bytes()
        assert picture.startswith(PNG)
        assert 10_000 < len(picture) < 150_000


def test_pictures_go_to_the_current_folder_when_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without options, `plot` writes the pictures to the current folder."""
    monkeypatch.chdir(tmp_path)
    assert main(["plot"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bursts.png", "skew.png"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--keys", "1000000000000"], "keys"),
        (["--rate", "0"], "rate"),
        (["--burstiness", "1000000", "--rate", "1", "--sources", "30"], "burstiness"),
    ],
)
def test_stream_that_cannot_be_drawn_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], name: str
) -> None:
    """One line states the parameter of a stream that cannot be drawn; no folder is created."""
    assert main(["plot", "--folder", str(tmp_path / "pictures"), *options]) == 2
    assert capsys.readouterr().err.startswith(f"error: {name}: must")
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.3])
def test_fitted_exponent_is_the_streams(exponent: float) -> None:
    """The line in the picture has the exponent of the settings."""
    ranks = draw_ranks(StreamSettings(keys=100_000, exponent=exponent, seed=1), 5_000_000)
    assert fitted_exponent(np.bincount(ranks, minlength=100_001)[1:].astype(float)) == pytest.approx(exponent, abs=0.01)
