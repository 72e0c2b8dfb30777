"""Read a topic's messages as they arrive, for `make topic`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from kafka import KafkaConsumer

if TYPE_CHECKING:
    from collections.abc import Iterator


def follow(bootstrap: str, topic: str) -> Iterator[str]:
    """Yield the value of each message of a topic from now on, as text."""
    with closing(
        KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="latest", group_id=None)
    ) as consumer:
        for message in consumer:
            yield message.value.decode(errors="replace")
