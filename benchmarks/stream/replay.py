"""Send the producer's batches of a topic to another topic at a rate, as the broker has stored them.

The application that is measured shares its processors with the sender. To make and pack new events takes a fifth of two
cores at 60,000 a second; to send packed batches takes next to nothing.

This uses internal parts of kafka-python, whose version is pinned.
"""

from __future__ import annotations

import heapq
import mmap
import time
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from kafka.errors import for_code
from kafka.net.compat import KafkaNetClient
from kafka.protocol.producer import ProduceRequest
from kafka.record import MemoryRecords

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from foundation.settings import Settings

ANSWER_MS = 10_000
_FIRST_OFFSET_BYTES = 8  # at the head of a batch, outside its checksum: the broker chooses the offset
_TOPICS_BY_NAME = 9  # a version of the request that has topics' names; later ones have their ids


class Stored(NamedTuple):
    """A producer's batch as the broker has stored it."""

    made_ms: int  # the timestamp of its last event
    partition: int
    events: int
    content: bytes


class Appended(NamedTuple):
    """A producer's batch that the broker has appended: its place in the topic, and when, by the broker's clock."""

    partition: int
    following: int  # the offset after its last event
    events: int
    moment: float


def replay(config: Settings, source: str, target: str, rate: int) -> list[Appended]:
    """Send all events of one topic to another, in their order and to the same partitions; return what was appended.

    The source must have timestamps of the kind CreateTime: the broker refuses batches with LogAppendTime. Batches keep
    their producer's numbers, by which the broker recognises duplicates: a target takes them once.
    """
    appended = []
    with closing(KafkaNetClient(bootstrap_servers=config.kafka_bootstrap)) as client:
        node, due = client.least_loaded_node(bootstrap_fallback=True), time.monotonic()
        for batch in _stored(config.state / "kafka" / "data", source):
            time.sleep(max(0.0, due - time.monotonic()))
            appended.append(_send(client, node, target, batch))
            due += batch.events / rate
    return appended


def _send(client: KafkaNetClient, node: int, topic: str, batch: Stored) -> Appended:
    kind = ProduceRequest.TopicProduceData
    part = kind.PartitionProduceData(index=batch.partition, records=batch.content)
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=ANSWER_MS,
        topic_data=[kind(name=topic, partition_data=[part])],
        max_version=_TOPICS_BY_NAME,
    )
    answer = client.send_and_receive(node, request, timeout_ms=ANSWER_MS)
    ((taken,),) = (about.partition_responses for about in answer.responses)
    if taken.error_code:
        raise for_code(taken.error_code)(taken.error_message)
    return Appended(batch.partition, taken.base_offset + batch.events, batch.events, taken.log_append_time_ms / 1000)


def _stored(logs: Path, topic: str) -> Iterator[Stored]:
    """Read a topic's batches from the broker's own files, in the order they were made."""
    folders = sorted(logs.glob(f"{topic}-[0-9]*"))
    return heapq.merge(*(_stored_in(folder) for folder in folders), key=lambda batch: batch.made_ms)


def _stored_in(folder: Path) -> Iterator[Stored]:
    partition = int(folder.name.rpartition("-")[2])
    for segment in sorted(folder.glob("*.log")):
        with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            at = 0
            for batch in MemoryRecords(log):
                content = bytes(_FIRST_OFFSET_BYTES) + log[at + _FIRST_OFFSET_BYTES : at + batch.size_in_bytes]
                yield Stored(batch.max_timestamp, partition, batch.records_count, content)
                at += batch.size_in_bytes
