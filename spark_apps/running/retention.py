"""Events that a topic has lost before they were read, by its retention: a start that finds any is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundation.errors import LostEventsError
from spark_apps.running.checkpoint import next_offsets

if TYPE_CHECKING:
    from pathlib import Path

    from spark_apps.pipeline.topics import TopicIncarnation


def check_nothing_lost(incarnation: TopicIncarnation, checkpoint: Path) -> None:
    """Compare where a query would go on with what its topic still has, or raise LostEventsError."""
    begins = next_offsets(checkpoint, incarnation.topic)
    earliest = incarnation.earliest(begins)
    lost = {part: earliest[part] - begins[part] for part in sorted(begins) if earliest[part] > begins[part]}
    if lost:
        listed = ", ".join(f"{count} of partition {part}" for part, count in lost.items())
        total = sum(lost.values())
        raise LostEventsError(
            f"topic {incarnation.topic!r} has lost {total} events before they were read: {listed}",
            "To go on from "
            f"the oldest that it has, remove {checkpoint}; accounting then shows what is lost (docs/pipelines.md).",
        )
