"""The lag: how many events of a topic no batch has read yet."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from kafka import KafkaConsumer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE_MS = 3000  # short, because the caller also looks for a stop request


class Lag:
    """Asks the broker where a topic ends, over a connection that stays open."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._consumer: KafkaConsumer | None = None

    def behind(self, next_offsets: Mapping[int, int]) -> int:
        """Return the number of events from each partition's next offset to its end; without one, from its beginning.

        Raises:
            KafkaError: the broker does not answer.
        """
        try:
            return self._ask(next_offsets)
        except BaseException:
            self.close()
            raise

    def oldest_unread(self, next_offsets: Mapping[int, int]) -> float | None:
        """Return the Unix time of the oldest event that no batch has read, by Kafka's timestamp; None if all are read.

        Raises:
            KafkaError: the broker does not answer.
        """
        consumer = self._connected()
        parts = [TopicPartition(self._topic, part) for part in consumer.partitions_for_topic(self._topic) or ()]
        ends = consumer.end_offsets(parts, PATIENCE_MS)
        begins = consumer.beginning_offsets(parts, PATIENCE_MS)
        unread = {part: max(begins[part], next_offsets.get(part.partition, 0)) for part in parts}
        unread = {part: first for part, first in unread.items() if first < ends[part]}
        times = []
        for part, first in unread.items():
            consumer.assign([part])
            consumer.seek(part, first)
            times += [message.timestamp / 1000 for batch in consumer.poll(PATIENCE_MS, 1).values() for message in batch]
        return min(times, default=None)

    def close(self) -> None:
        """Close the connection to the broker."""
        if self._consumer is not None:
            with closing(self._consumer):
                self._consumer = None

    def _connected(self) -> KafkaConsumer:
        if self._consumer is None:
            self._consumer = KafkaConsumer(
                bootstrap_servers=self._bootstrap,
                group_id=None,
                enable_auto_commit=False,
                bootstrap_timeout_ms=PATIENCE_MS,
            )
        return self._consumer

    def _ask(self, next_offsets: Mapping[int, int]) -> int:
        consumer = self._connected()
        parts = [TopicPartition(self._topic, part) for part in consumer.partitions_for_topic(self._topic) or ()]
        ends = consumer.end_offsets(parts, PATIENCE_MS)
        unread = [part for part in parts if part.partition not in next_offsets]
        begins = consumer.beginning_offsets(unread, PATIENCE_MS) if unread else {}
        return sum(end - begins.get(part, next_offsets.get(part.partition, 0)) for part, end in ends.items())
