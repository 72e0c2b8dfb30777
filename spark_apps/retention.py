"""Events that a topic has lost before they were read, by its retention: a start that finds any is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from spark_apps.topics import Source


class LostEventsError(Exception):
    """A topic no longer has events that were not read yet; the message says how many of which partitions."""


class CheckpointError(Exception):
    """A file of Spark's checkpoint is damaged; the message says which, and what to do."""


def check_nothing_lost(source: Source, checkpoint: Path) -> None:
    """Compare where a query would go on with what its topic still has, or raise LostEventsError."""
    begins = _next_offsets(checkpoint, source.topic)
    earliest = source.earliest(begins)
    lost = {part: earliest[part] - begins[part] for part in sorted(begins) if earliest[part] > begins[part]}
    if lost:
        listed = ", ".join(f"{count} of partition {part}" for part, count in lost.items())
        total = sum(lost.values())
        raise LostEventsError(
            f"topic {source.topic!r} has lost {total} events before they were read: {listed}. To go on from "
            f"the oldest that it has, remove {checkpoint}; accounting then shows what is lost (docs/pipelines.md)."
        )


def _next_offsets(checkpoint: Path, topic: str) -> dict[int, int]:
    """Read from Spark's checkpoint where each partition's next batch begins: where the last one that was done ended."""
    done = [int(file.name) for file in (checkpoint / "commits").glob("[0-9]*")]
    file = checkpoint / "offsets" / str(max(done)) if done else checkpoint / "sources" / "0" / "0"
    if not file.exists():
        return {}
    try:
        offsets = json.loads(file.read_text().splitlines()[-1])[topic]
        return {int(part): int(offset) for part, offset in offsets.items()}
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{file} is damaged. Remove {checkpoint}: the topic is read again from its beginning, and no event "
            "lands twice."
        ) from error
