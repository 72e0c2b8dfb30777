"""Create a pipeline's topics, and tell the incarnations of a topic apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from foundation.connections import ANSWER_SECONDS, connect
from foundation.errors import TopicError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from foundation.connections import Login
    from spark_apps.pipeline.definition import Pipeline

T = TypeVar("T")
KNOWN = "SELECT source FROM source WHERE topic = %s AND topic_id = %s"
_BOOTSTRAP_MS, _ANSWER_MS = 5_000, 10_000
_admins: dict[str, KafkaAdminClient] = {}


@dataclass(frozen=True)
class TopicIncarnation:
    """One incarnation of a topic: a topic that is deleted and recreated is another one.

    Attributes:
        number: its number in the warehouse, the column `source`.
        bootstrap: the broker's address.
        topic: the topic's name.
        topic_id: the broker's identifier for it, which no other incarnation has.
    """

    number: int
    bootstrap: str
    topic: str
    topic_id: str

    def check(self) -> None:
        """Raise TopicError unless the topic of this name is still this incarnation.

        An incarnation that is deleted never comes back. So a check that passes covers everything read before it.
        """
        if _topic_id(self.bootstrap, self.topic) != self.topic_id:
            raise TopicError(
                f"topic {self.topic!r} was deleted and recreated",
                "Nothing to do: the application reads the new topic from offset 0 on.",
            )

    def earliest(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the first offset that each of the partitions still has."""
        questions = {TopicPartition(self.topic, partition): OffsetSpec.EARLIEST for partition in partitions}
        answers = _answer(self.bootstrap, lambda admin: admin.list_partition_offsets(questions))
        return {partition.partition: answer.offset for partition, answer in answers.items()}


def create_topics(bootstrap: str, pipeline: Pipeline) -> list[str]:
    """Create the pipeline's topics that are missing and return their names."""
    layout = {"num_partitions": pipeline.source.partitions}
    wanted = {topic for topic in (pipeline.source.topic, pipeline.enriched.topic) if topic}
    missing = wanted - set(_answer(bootstrap, lambda admin: admin.list_topics()))
    if missing:
        _answer(bootstrap, lambda admin: admin.create_topics(dict.fromkeys(missing, layout), wait_for_metadata=True))
    return sorted(missing)


def incarnation_of(bootstrap: str, topic: str, loader: Login) -> TopicIncarnation:
    """Return the incarnation of a topic that the broker has now; number it in the warehouse if it is new there."""
    topic_id = _topic_id(bootstrap, topic)
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        if not cursor.execute(KNOWN, (topic, topic_id)):  # INSERT IGNORE would use up a number each time
            cursor.execute("INSERT INTO source (topic, topic_id) VALUES (%s, %s)", (topic, topic_id))
            cursor.execute(KNOWN, (topic, topic_id))
        ((number,),) = cursor.fetchall()
    return TopicIncarnation(int(number), bootstrap, topic, topic_id)


def known_number(bootstrap: str, topic: str, reader: Login) -> int | None:
    """Return the number of the topic's present incarnation; None if no application has read it yet."""
    with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(KNOWN, (topic, _topic_id(bootstrap, topic)))
        return next((int(number) for (number,) in cursor.fetchall()), None)


def _topic_id(bootstrap: str, topic: str) -> str:
    (described,) = _answer(bootstrap, lambda admin: admin.describe_topics([topic]))
    if described["error_code"]:
        raise TopicError(
            f"topic {topic!r} does not exist on {bootstrap}", "Run the pipeline's Dag prepare, which creates it."
        )
    return str(described["topic_id"])


def _answer(bootstrap: str, question: Callable[[KafkaAdminClient], T]) -> T:
    """Ask the broker and return its answer. The connection is kept, because tasks and the application ask often."""
    try:
        if bootstrap not in _admins:
            _admins[bootstrap] = KafkaAdminClient(
                bootstrap_servers=bootstrap, bootstrap_timeout_ms=_BOOTSTRAP_MS, request_timeout_ms=_ANSWER_MS
            )
        return question(_admins[bootstrap])
    except KafkaError as error:
        if stale := _admins.pop(bootstrap, None):
            stale.close()
        raise TopicError(
            f"no broker answers at {bootstrap} ({error})",
            "Start it, or correct FRESHET_KAFKA_HOST and FRESHET_KAFKA_PORT.",
        ) from error
