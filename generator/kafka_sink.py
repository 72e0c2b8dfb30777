"""Send events to Kafka, and count an event as acknowledged when the broker has acknowledged it.

The producer is idempotent, and the sink checks every future. It waits during an outage, and limits the events in
flight, because kafka-python (3.0) has no limit for memory. When the producer must change its epoch, kafka-python fails
the batches in flight, and the sink sends their events again. If the broker had stored such a batch, its events are in
the topic twice, with the same event_id.
"""

import time
from collections import deque
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from kafka import KafkaAdminClient, KafkaProducer
from kafka import errors as kafka_errors

from generator.events import Events
from generator.sinks import SinkError, Stop
from generator.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka.producer.future import FutureRecordMetadata

MAX_IN_FLIGHT = 5_000  # with many more, Python's garbage collector spends its time on them
_SLICE = 500
DELIVERY_SECONDS = 600  # the longest outage that the sink waits for
STOP_SECONDS = 3  # after a stop request; Airflow kills a task five seconds after SIGTERM
_CLOSE_SECONDS = 0.5
_BLOCK_SECONDS = 0.5  # between two checks for a stop request while the topic's metadata is missing
_REQUEST_SECONDS = 30
_BOOTSTRAP_SECONDS = 5
_SLEEP_SECONDS = 0.005

# The benchmark gives the bare producer the same settings.
PRODUCER_SETTINGS = {
    "enable_idempotence": True,
    "acks": "all",
    "compression_type": "lz4",
    "linger_ms": 20,
    "batch_size": 32 * 1024,
    "max_block_ms": round(_BLOCK_SECONDS * 1000),
    "reconnect_backoff_max_ms": 1_000,
    "bootstrap_timeout_ms": _BOOTSTRAP_SECONDS * 1000,
    "allow_auto_create_topics": False,
    "metrics_enabled": False,
}

# The broker may or may not have stored the event: send it again.
_OUTCOME_UNKNOWN = (
    kafka_errors.OutOfOrderSequenceNumberError,
    kafka_errors.UnknownProducerIdError,
    kafka_errors.InvalidProducerEpochError,
    kafka_errors.RetriableError,
)


def ensure_topic(bootstrap: str, topic: str, create_partitions: int | None) -> None:
    """Check that the topic exists; create it only if a number of partitions is given."""
    try:
        with closing(
            KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=_BOOTSTRAP_SECONDS * 1000)
        ) as admin:
            if topic in admin.list_topics():
                return
            if create_partitions is None:
                raise SinkError(
                    f"topic: {topic!r} does not exist at {bootstrap}; create it, or add --create-topic --partitions N"
                )
            with suppress(kafka_errors.TopicAlreadyExistsError):  # another client was faster
                admin.create_topics({topic: {"num_partitions": create_partitions}}, wait_for_metadata=True)
    except kafka_errors.KafkaError as error:
        raise _no_broker(bootstrap, error) from error


def _no_broker(bootstrap: str, error: Exception) -> SinkError:
    return SinkError(f"bootstrap: no Kafka broker answers at {bootstrap} ({error}); start it, or correct the address")


class _Slice(NamedTuple):
    """Some events in flight, with few objects per event, because the garbage collector visits each object."""

    futures: list["FutureRecordMetadata"]
    keys: list[bytes]
    values: list[bytes]
    due: int  # when the first event was due, on the tally's clock; 0 without a schedule


class KafkaSink:
    """Sends events to a topic, and waits for the broker's acknowledgements."""

    def __init__(
        self, bootstrap: str, topic: str, tally: Tally, stop: Stop, patience: float = DELIVERY_SECONDS
    ) -> None:
        self._topic = topic
        self._tally = tally
        self._stop = stop
        self._patience = patience
        try:
            self._producer = KafkaProducer(
                bootstrap_servers=bootstrap,
                delivery_timeout_ms=round(patience * 1000),
                # One request must fit into the delivery timeout.
                request_timeout_ms=round(min(_REQUEST_SECONDS, patience / 2) * 1_000),
                **PRODUCER_SETTINGS,
            )
            with suppress(kafka_errors.KafkaTimeoutError):  # the first event then waits for the metadata
                self._producer.partitions_for(topic)
        except kafka_errors.KafkaError as error:
            raise _no_broker(bootstrap, error) from error
        self._in_flight: deque[_Slice] = deque()
        self._open_events = 0

    def write(self, events: Events) -> None:
        """Send the events; wait while too many are in flight; on a stop request drop the rest."""
        since = self._tally.waiting_since
        text, ends = events.json_lines()
        keys = [b"%d" % product for product in events.products.tolist()]
        starts = [0, *(ends[:-1] + 1).tolist()]
        values = [text[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]
        for first in range(0, len(keys), _SLICE):
            if not self._make_room():
                return
            open_before = self._open_events
            due = since and since + int(events.sold_at[first] - events.sold_at[0]) * 1000
            try:
                self._send(keys[first : first + _SLICE], values[first : first + _SLICE], due)
            finally:
                self._tally.sent += self._open_events - open_before
        self.settle()

    def _send(self, keys: list[bytes], values: list[bytes], due: int) -> None:
        """Give the events to the producer; wait while the topic has no metadata; on a stop request drop the rest."""
        futures: list[FutureRecordMetadata] = []
        self._in_flight.append(_Slice(futures, keys, values, due))
        give_up_at = time.monotonic() + self._patience
        try:
            while len(futures) < len(keys):
                try:
                    self._send_rest(keys, values, futures)
                except kafka_errors.KafkaTimeoutError as error:
                    if self._stop.requested:
                        return
                    if time.monotonic() > give_up_at:
                        raise self._refusal(error) from error
        except kafka_errors.KafkaError as error:
            raise self._refusal(error) from error
        finally:
            self._open_events += len(futures)

    def _send_rest(self, keys: list[bytes], values: list[bytes], futures: list["FutureRecordMetadata"]) -> None:
        send, topic, done = self._producer.send, self._topic, len(futures)
        for key, value in zip(keys[done:], values[done:], strict=True):
            futures.append(send(topic, value, key))  # one by one: if a send fails, the futures before it still count

    def _refusal(self, error: Exception) -> SinkError:
        return SinkError(
            f"topic: {self._topic!r} accepts no more events ({error}); check the broker and its log, then run again"
        )

    def settle(self) -> None:
        """Check finished futures: count acknowledged events, send again those whose outcome is unknown."""
        while self._in_flight and all(future.is_done for future in self._in_flight[0].futures):
            futures, keys, values, due = self._in_flight.popleft()
            self._open_events -= len(futures)
            failed = [i for i, future in enumerate(futures) if future.exception is not None]
            self._tally.acknowledged += len(futures) - len(failed)
            self._tally.note_lag(due)
            if failed:
                self._raise_if_refused(futures[i].exception for i in failed)
                if self._stop.requested:
                    continue  # not sent again: that could take longer than STOP_SECONDS
                self._tally.resent += len(failed)
                self._send([keys[i] for i in failed], [values[i] for i in failed], due)
        self._tally.open_since = self._in_flight[0].due if self._in_flight else 0

    def _raise_if_refused(self, errors: "Iterable[Exception]") -> None:
        for error in errors:
            if isinstance(error, kafka_errors.KafkaTimeoutError) or not isinstance(error, _OUTCOME_UNKNOWN):
                raise self._refusal(error)

    def _make_room(self) -> bool:
        since = time.monotonic()
        while not self._stop.requested:
            self.settle()
            if self._open_events < MAX_IN_FLIGHT:
                return True
            self._check_patience(since)
            time.sleep(_SLEEP_SECONDS)
        return False

    def _check_patience(self, since: float) -> None:
        """Raise SinkError when the wait takes too long: the producer itself waits forever for a frozen broker."""
        waited = time.monotonic() - since
        if waited > self._patience + STOP_SECONDS:
            raise self._refusal(kafka_errors.KafkaTimeoutError(f"nothing was acknowledged for {waited:.0f} s"))

    def close(self) -> None:
        """Wait until all sent events are acknowledged; after a stop request, wait for at most STOP_SECONDS."""
        try:
            stopped_at = None
            since = time.monotonic()
            self.settle()
            while self._in_flight:
                if self._stop.requested:
                    stopped_at = stopped_at or time.monotonic()
                    if time.monotonic() - stopped_at > STOP_SECONDS:
                        break
                self._check_patience(since)
                time.sleep(_SLEEP_SECONDS)
                self.settle()
        finally:
            if self._in_flight:
                self._tally.note_lag(self._in_flight[0].due)
                # close() alone raises and leaves the sender running, which then delivers events that nobody counts.
                self._producer._sender.force_close()  # noqa: SLF001 - kafka-python has no other way
            with suppress(kafka_errors.KafkaError):
                self._producer.close(timeout=_CLOSE_SECONDS if self._stop.requested else STOP_SECONDS)
