"""What a start reads of Spark's checkpoint; a topic that has lost events is among the tests of exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_apps.retention import CheckpointError, check_nothing_lost
from spark_apps.topics import Source

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("text", ["", "v1\n", 'v1\n{}\n{"sales": {"0"', 'v1\n{}\n{"another": {"0": 5}}', "v1\n{}\n[]"])
def test_a_damaged_checkpoint_is_one_line(tmp_path: Path, text: str) -> None:
    """As a crash of the machine can leave it: the line says which file, and that removing it is safe."""
    for folder in ("commits", "offsets"):
        (tmp_path / folder).mkdir()
    (tmp_path / "commits" / "7").write_text("v1\n{}")
    (tmp_path / "offsets" / "7").write_text(text)
    with pytest.raises(CheckpointError, match=rf"offsets/7 is damaged. Remove {tmp_path}: ") as caught:
        check_nothing_lost(Source(1, "127.0.0.1:1", "sales", "id"), tmp_path)
    assert "\n" not in str(caught.value)
