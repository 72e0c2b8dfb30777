"""Refuse a start if the topic's retention removed events before they were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundation.errors import LostEventsError
from spark_apps.running.checkpoint import next_offsets

if TYPE_CHECKING:
    from pathlib import Path

    from spark_apps.pipeline.topics import TopicIncarnation


def check_nothing_lost(incarnation: TopicIncarnation, checkpoint: Path) -> None:
    """Raise LostEventsError if the topic no longer has the events that the query reads next."""
    begins = next_offsets(checkpoint, incarnation.topic)
    earliest = incarnation.earliest(begins)
    lost = {part: earliest[part] - begins[part] for part in sorted(begins) if earliest[part] > begins[part]}
    if lost:
        listed = ", ".join(f"{count} of partition {part}" for part, count in lost.items())
        total = sum(lost.values())
        raise LostEventsError(
            f"topic {incarnation.topic!r} has lost {total} events before they were read: {listed}",
            f"To continue from the oldest event that it has, remove {checkpoint}; accounting then shows what is lost "
            "(docs/operating.md).",
        )
