"""The picture of a plan has a line for each join, and the choice on the top of the chosen join's lines."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.image import imread
from semistream.joins import BY_NAME
from semistream.planning import PAPERS, Workload
from semistream.planning.plot import draw
from semistream.planning.tuner import best_of_each

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD = Workload.of_the_papers(20_000)
MEMORY = 480_000


def explain(*words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Plan a small join on the command line; modules in a folder come before those that are installed."""
    command = [sys.executable, "-m", "semistream", "explain", "--rows", "20000", "--memory", str(MEMORY), *words]
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("joins", [["chybridjoin", "hybridjoin", "inlj"], ["meshjoin"]])
def test_it_has_a_line_for_each_join_and_the_choice_at_the_best_point(joins: list[str]) -> None:
    """Rates over memory of all joins; over page size and, with a front stage, over its share of the chosen one."""
    found = best_of_each(WORKLOAD, MEMORY, PAPERS, joins=joins)
    best = max(found.values(), key=lambda each: each.rate)
    over_memory, *others = draw(found, WORKLOAD, MEMORY, PAPERS).axes
    labels = {line.get_label() for line in over_memory.lines}
    assert labels == {BY_NAME[name].paper_name for name in joins} | {"the choice"}
    assert len(others) == (2 if BY_NAME[best.plan.join].needs.front_stage else 1)
    for axes in (over_memory, *others):
        chosen, rate = np.asarray(axes.lines[-1].get_xydata())[0]
        assert rate == best.rate
        values, rates = np.asarray(axes.lines[-2].get_xydata()).T
        assert rates[np.argmin(np.abs(values - chosen))] == pytest.approx(best.rate, rel=0.05)
        if axes is not over_memory:
            assert rates.max() == pytest.approx(best.rate, rel=0.05)


def test_explain_writes_the_picture_and_prints_what_it_prints_without_it(tmp_path: Path) -> None:
    """`--plot` makes a picture that can be read, and the text stays as it is."""
    drawn = explain("--plot", str(tmp_path / "plan.png"))
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout == explain().stdout
    assert imread(tmp_path / "plan.png").std() > 0
    nowhere = explain("--plot", str(tmp_path / "none" / "plan.png"))
    assert nowhere.returncode != 0
    assert "No such file or directory" in nowhere.stderr
    assert "Traceback" not in nowhere.stderr


def test_without_matplotlib_only_the_plot_fails(tmp_path: Path) -> None:
    """The library does not need matplotlib: without it the plan is printed, and `--plot` says what to install."""
    (tmp_path / "matplotlib.py").write_text("raise ImportError\n", encoding="utf-8")
    assert explain(path=tmp_path).returncode == 0
    refused = explain("--plot", str(tmp_path / "plan.png"), path=tmp_path)
    assert refused.returncode != 0
    assert refused.stderr.startswith("semistream explain: matplotlib must be installed to draw a plot")
    assert "Traceback" not in refused.stderr
