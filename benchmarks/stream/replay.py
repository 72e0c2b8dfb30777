"""A topic's batches sent to another topic at a rate, as the broker has stored them.

What is measured shares its processors with whoever sends. To make and pack events anew takes a fifth of two cores at
60,000 a second; to send what is packed already, next to nothing.

It speaks Kafka's protocol by parts of kafka-python that are not for everybody; its version is pinned.
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
_TOPICS_BY_NAME = 9  # a version of the request that names topics, later ones number them


class Stored(NamedTuple):
    """A batch as it lies in the log."""

    made_ms: int  # when its last event was
    partition: int
    events: int
    content: bytes


class Appended(NamedTuple):
    """A batch that the broker has taken: its place in the topic, and when that was, by the broker's clock."""

    partition: int
    following: int  # the offset behind its last event
    events: int
    moment: float


def replay(config: Settings, source: str, target: str, rate: int) -> list[Appended]:
    """Send all events of one topic to another, in their order, each to the partition it has in the first; then return.

    The source's times must be those of the events' making: the broker refuses batches with times of its own. Batches
    keep their producer's numbers, by which the broker knows repeats: a target takes them once.
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
