"""What is in a topic, read whole."""

from __future__ import annotations

from contextlib import closing

from kafka import KafkaConsumer, TopicPartition


def read_topic(bootstrap: str, topic: str) -> dict[tuple[int, int], bytes]:
    """Return all messages of a topic by their position."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)) as consumer:
        parts = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(parts)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(parts)
        found: dict[tuple[int, int], bytes] = {}
        while any(consumer.position(part) < ends[part] for part in parts):
            for part, records in consumer.poll(1000).items():
                found |= {(part.partition, record.offset): record.value for record in records}
    return found
