"""A start checks Spark's checkpoint and finds an open batch in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from foundation.errors import CheckpointError
from spark_apps.pipeline.topics import TopicIncarnation
from spark_apps.running.checkpoint import check_logs, has_open_batch
from spark_apps.running.retention import check_nothing_lost

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("text", ["", "v1\n", 'v1\n{}\n{"sales": {"0"', 'v1\n{}\n{"another": {"0": 5}}', "v1\n{}\n[]"])
def test_a_damaged_checkpoint_is_one_line(tmp_path: Path, text: str) -> None:
    """The error for a damaged offset file states the file and that removing the checkpoint is safe."""
    for folder in ("commits", "offsets"):
        (tmp_path / folder).mkdir()
    (tmp_path / "commits" / "7").write_text("v1\n{}")
    (tmp_path / "offsets" / "7").write_text(text)
    with pytest.raises(CheckpointError, match=rf"offsets/7 is damaged. Remove {tmp_path}: ") as caught:
        check_nothing_lost(TopicIncarnation(1, "127.0.0.1:1", "sales", "id"), tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "v1\n", "v1\n{", "\0\0\0\0"])
@pytest.mark.parametrize(("file", "remove"), [("commits/10", "that file: its batch"), ("metadata", "{}: the topic")])
def test_a_damaged_log_is_one_line(tmp_path: Path, file: str, remove: str, text: str) -> None:
    """The error for a damaged log states what to remove; the files of earlier batches are not read."""
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "9").touch()
    (tmp_path / "commits" / "10").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (tmp_path / "metadata").write_text('{"id":"0"}')
    check_logs(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(CheckpointError, match=rf"{file} is damaged\. Remove {remove.format(tmp_path)}"):
        check_logs(tmp_path)


def test_a_checkpoint_that_is_not_there_is_not_damaged(tmp_path: Path) -> None:
    """A checkpoint that does not exist, as before the first start, raises no error."""
    check_logs(tmp_path)


@pytest.mark.parametrize(
    ("planned", "done", "is_open"),
    [([], [], False), ([0], [], True), ([0, 1], [0, 1], False), ([9, 10], [9], True), ([9, 10], [9, 10], False)],
)
def test_a_batch_that_was_planned_and_not_done_is_open(
    tmp_path: Path, planned: list[int], done: list[int], *, is_open: bool
) -> None:
    """A planned batch without a commit is open; batches compare as numbers, and other files are ignored."""
    for folder, numbers in (("offsets", planned), ("commits", done)):
        (tmp_path / folder).mkdir()
        for number in numbers:
            (tmp_path / folder / str(number)).write_text('v1\n{}\n{"sales": {"0": 5}}')
            (tmp_path / folder / f".{number}.crc").touch()
            (tmp_path / folder / f"{number}9.kept").touch()
    assert has_open_batch(tmp_path, "sales") is is_open
