"""The constants of this machine are measured in seconds, kept with their date, and used by a plan."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from semistream.modelled_disk import SSD
from semistream.planning.measure import Measured, measure, read_machine

if TYPE_CHECKING:
    from pathlib import Path


def test_the_constants_are_of_this_machine_and_today() -> None:
    """A row is looked up in less time than a tuple takes, and none of the seven takes nothing or a millisecond."""
    found = measure()
    assert found.date == time.strftime("%Y-%m-%d")
    assert 0 < found.look_up < found.handle < 1e-6
    assert 0 < found.wait < 1e-5
    assert 0 <= found.page < 1e-3
    assert 0 < found.row < 1e-5
    assert 0 < found.value < 1e-6
    assert 0 < found.output < 1e-6


def test_a_plan_is_made_with_the_constants_of_a_file(tmp_path: Path) -> None:
    """`explain --machine` uses the file's constants: with tuples ten times as dear, the rate is far lower."""
    rates = []
    for handle in (1e-7, 1e-6):
        file = tmp_path / f"{handle}.json"
        Measured("2026-01-02", 1e-9, handle, 0.0, 1e-7, 1e-5, 1e-7, 1e-7).write(file)
        assert read_machine(file, "ssd").disk == SSD
        words = f"explain --rows 100000 --memory 4MB --machine {file}".split()
        command = [sys.executable, "-m", "semistream", *words]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rates.append(best_rate(text))
    assert rates[1] < rates[0] / 3


def best_rate(text: str) -> float:
    """Return the rate of the first join in a table of plans."""
    lines = text.splitlines()
    row = lines[1 + next(number for number, line in enumerate(lines) if line.startswith("join "))]
    return float(next(word for word in row.split() if word.replace(",", "").isdigit()).replace(",", ""))


def test_a_file_that_is_no_machine_is_refused(tmp_path: Path) -> None:
    """A missing file, and one with other values, are refused with the command that makes one."""
    (tmp_path / "other.json").write_text('{"a": 1}')
    for name in ("missing.json", "other.json"):
        with pytest.raises(ValueError, match="python -m semistream measure --file"):
            read_machine(tmp_path / name, "ssd")
