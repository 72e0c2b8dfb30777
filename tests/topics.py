"""Functions that read a whole topic."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from kafka import KafkaConsumer, TopicPartition

if TYPE_CHECKING:
    from kafka.consumer.fetcher import ConsumerRecord

Position = tuple[int, int]


def read_messages(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """Return all messages of a topic, with their keys and headers."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)) as consumer:
        parts = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(parts)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(parts)
        found: list[ConsumerRecord] = []
        while any(consumer.position(part) < ends[part] for part in parts):
            found += [record for records in consumer.poll(1000).values() for record in records]
    return found


def read_topic(bootstrap: str, topic: str) -> dict[Position, bytes]:
    """Return the values of all messages of a topic, by their position."""
    return {(record.partition, record.offset): record.value for record in read_messages(bootstrap, topic)}


def read_enriched(bootstrap: str, topic: str, source: int) -> tuple[dict[Position, bytes], int]:
    """Read an enriched topic and drop duplicates; return values by their event's position, and the duplicates."""
    seen: dict[Position, bytes] = {}
    repeats = 0
    for record in read_messages(bootstrap, topic):
        headers = {name: int(value) for name, value in record.headers}
        position = headers["partition"], headers["offset"]
        if headers["source"] == source:
            repeats += position in seen
            seen.setdefault(position, record.value)
    return seen, repeats
