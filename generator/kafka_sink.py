"""Events into a Kafka topic, each counted only when the broker has acknowledged it.

The producer is idempotent, and every future is looked at. An outage is waited for; the number of events in flight is
bounded here, because kafka-python (3.0) bounds no memory itself. When the producer must change its epoch, kafka-python
fails the batches that were in flight: their events are sent again. Should the broker have stored such a batch after
all, its events are in the topic twice, with the same event_id.
"""

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from kafka import KafkaAdminClient, KafkaProducer
from kafka import errors as kafka_errors

from generator.events import Events
from generator.sinks import SinkError, Stop
from generator.tally import Tally

if TYPE_CHECKING:
    from kafka.producer.future import FutureRecordMetadata

MAX_IN_FLIGHT = 2_500  # many more, and Python's garbage collector spends its time walking through them
DELIVERY_SECONDS = 600  # the longest outage that is waited for
STOP_SECONDS = 4  # after a request to stop; Airflow kills five seconds after SIGTERM
_BOOTSTRAP_SECONDS = 5
_NAP_SECONDS = 0.005

# Settings a measurement against the bare producer must share.
PRODUCER_SETTINGS = {
    "enable_idempotence": True,
    "acks": "all",
    "compression_type": "lz4",
    "linger_ms": 20,
    "batch_size": 64 * 1024,
    "delivery_timeout_ms": DELIVERY_SECONDS * 1000,
    "reconnect_backoff_max_ms": 1_000,
    "bootstrap_timeout_ms": _BOOTSTRAP_SECONDS * 1000,
    "allow_auto_create_topics": False,
    "metrics_enabled": False,
}

_FATE_UNKNOWN = (
    kafka_errors.OutOfOrderSequenceNumberError,
    kafka_errors.UnknownProducerIdError,
    kafka_errors.InvalidProducerEpochError,
    kafka_errors.RetriableError,
)


def ensure_topic(bootstrap: str, topic: str, create_partitions: int | None) -> None:
    """Check that the topic is there; create it only when a number of partitions is given."""
    try:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=_BOOTSTRAP_SECONDS * 1000)
    except kafka_errors.KafkaError as error:
        raise SinkError(f"bootstrap: no Kafka broker answers at {bootstrap}; is it running? ({error})") from error
    try:
        if topic in admin.list_topics():
            return
        if create_partitions is None:
            raise SinkError(
                f"topic: {topic!r} does not exist at {bootstrap}; create it, or add --create-topic --partitions N"
            )
        with suppress(kafka_errors.TopicAlreadyExistsError):  # somebody else was faster
            admin.create_topics({topic: {"num_partitions": create_partitions}}, wait_for_metadata=True)
    finally:
        admin.close()


class KafkaSink:
    """A sink whose acknowledgements are the broker's."""

    def __init__(self, bootstrap: str, topic: str, tally: Tally, stop: Stop) -> None:
        self._topic = topic
        self._tally = tally
        self._stop = stop
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, **PRODUCER_SETTINGS)
        self._producer.partitions_for(topic)  # so that the first event need not wait for metadata
        self._in_flight: deque[tuple[FutureRecordMetadata, bytes, bytes]] = deque()

    def write(self, events: Events) -> None:
        """Send the events; wait while too many are in flight, and leave the rest when asked to stop."""
        text, ends = events.json_lines()
        send, topic, in_flight = self._producer.send, self._topic, self._in_flight
        start = count = 0
        try:
            for product, end in zip(events.products.tolist(), ends.tolist(), strict=True):
                if len(in_flight) >= MAX_IN_FLIGHT:
                    self._tally.sent += count
                    count = 0
                    if not self._make_room():
                        return
                key, value = b"%d" % product, text[start:end]
                in_flight.append((send(topic, value, key), key, value))
                count += 1
                start = end + 1
        except kafka_errors.KafkaError as error:
            raise SinkError(f"topic: {topic!r} does not take events any more; {error}") from error
        finally:
            self._tally.sent += count
        self.settle()

    def settle(self) -> None:
        """Look at the futures that are done: count the acknowledged, send again those whose fate is unknown."""
        in_flight = self._in_flight
        acknowledged = 0
        while in_flight and in_flight[0][0].is_done:
            future, key, value = in_flight.popleft()
            if future.exception is None:
                acknowledged += 1
                continue
            if isinstance(future.exception, kafka_errors.KafkaTimeoutError) or not isinstance(
                future.exception, _FATE_UNKNOWN
            ):
                self._tally.acknowledged += acknowledged
                raise SinkError(f"topic: {self._topic!r} does not take events; {future.exception}")
            in_flight.append((self._producer.send(self._topic, value, key), key, value))
            self._tally.resent += 1
        self._tally.acknowledged += acknowledged

    def _make_room(self) -> bool:
        while not self._stop.requested:
            self.settle()
            if len(self._in_flight) <= MAX_IN_FLIGHT // 2:
                return True
            time.sleep(_NAP_SECONDS)
        return False

    def close(self) -> None:
        """Wait until everything sent is acknowledged; not for long when asked to stop."""
        try:
            stopped_at = None
            self.settle()
            while self._in_flight:
                if self._stop.requested:
                    stopped_at = stopped_at or time.monotonic()
                    if time.monotonic() - stopped_at > STOP_SECONDS:
                        break
                time.sleep(_NAP_SECONDS)
                self.settle()
        finally:
            if self._in_flight:
                # close() alone would raise and leave the sender running: what it delivers then, nobody counts.
                self._producer._sender.force_close()  # noqa: SLF001 - kafka-python offers no other way
            with suppress(kafka_errors.KafkaError):
                self._producer.close(timeout=STOP_SECONDS)
