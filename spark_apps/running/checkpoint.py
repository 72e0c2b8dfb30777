"""Spark's checkpoint of a query: how far the query has read, and whether a batch is open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from foundation.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path


def check_logs(checkpoint: Path) -> None:
    """Raise CheckpointError if the query's metadata or its newest commit is damaged."""
    whole = f"Remove {checkpoint}: the topic is read again from its beginning, and no event lands twice."
    if (checkpoint / "metadata").exists():
        _check(checkpoint / "metadata", 0, whole)
    done = _newest(checkpoint / "commits")
    if done is not None:
        _check(checkpoint / "commits" / str(done), 1, "Remove that file: its batch runs again and changes nothing.")


def next_offsets(checkpoint: Path, topic: str) -> dict[int, int]:
    """Return where each partition's next batch begins: the end of the last batch that is done; {} before any."""
    done = _newest(checkpoint / "commits")
    file = checkpoint / "sources" / "0" / "0" if done is None else checkpoint / "offsets" / str(done)
    if not file.exists():
        return {}
    remedy = f"Remove {checkpoint}: the topic is read again from its beginning, and no event lands twice."
    return _offsets(file, topic, remedy)


def has_open_batch(checkpoint: Path, topic: str) -> bool:
    """Return whether a batch was planned and is not done."""
    planned = _newest(checkpoint / "offsets")
    if planned in (None, _newest(checkpoint / "commits")):
        return False
    _offsets(checkpoint / "offsets" / str(planned), topic, "Remove that file: its batch is planned again.")
    return True


def _offsets(file: Path, topic: str, remedy: str) -> dict[int, int]:
    try:
        offsets = json.loads(file.read_text().splitlines()[-1])[topic]
        return {int(part): int(offset) for part, offset in offsets.items()}
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise CheckpointError(f"{file} is damaged", remedy) from error


def _check(file: Path, line: int, remedy: str) -> None:
    """Raise CheckpointError unless the line of a file, counted from 0, is JSON."""
    try:
        json.loads(file.read_text().splitlines()[line])
    except (LookupError, OSError, ValueError) as error:
        raise CheckpointError(f"{file} is damaged", remedy) from error


def _newest(folder: Path) -> int | None:
    """Return the number of the newest batch in a folder, None if there is none."""
    return max((int(file.name) for file in folder.glob("*") if file.name.isdecimal()), default=None)
