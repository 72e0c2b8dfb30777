"""Read a topic's messages as they arrive, for `make topic`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from kafka import KafkaConsumer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUIET_MS = 10_000


def follow(bootstrap: str, topic: str, why_nothing: Callable[[], str], quiet_ms: int = QUIET_MS) -> Iterator[str]:
    """Yield the value of each message of a topic from now on, as text.

    Args:
        bootstrap: the broker's address.
        topic: its name.
        why_nothing: returns what to say when no message arrives for `quiet_ms` milliseconds.
        quiet_ms: see there.
    """
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="latest", group_id=None)
    with closing(consumer):
        while True:
            arrived = [message for batch in consumer.poll(quiet_ms).values() for message in batch]
            if not arrived:
                yield why_nothing()
            for message in arrived:
                yield message.value.decode(errors="replace")
