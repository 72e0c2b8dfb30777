"""Topics of a pipeline: made when missing, and told apart from others of the same name."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from kafka import KafkaAdminClient

from services.warehouse import connect

if TYPE_CHECKING:
    from services.warehouse import Login
    from spark_apps.pipeline import Pipeline


class TopicError(Exception):
    """A topic is missing; the message says what makes it."""


def create_topics(bootstrap: str, pipeline: Pipeline) -> list[str]:
    """Make the pipeline's topics that are missing and return their names."""
    layout = {"num_partitions": pipeline.source.partitions}
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        wanted = {topic for topic in (pipeline.source.topic, pipeline.enriched.topic) if topic}
        missing = wanted - set(admin.list_topics())
        if missing:
            admin.create_topics(dict.fromkeys(missing, layout), wait_for_metadata=True)
    return sorted(missing)


def source_number(bootstrap: str, topic: str, loader: Login) -> int:
    """Return the small number under which this incarnation of a topic is known in the warehouse."""
    topic_id = _topic_id(bootstrap, topic)
    with connect(loader) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT IGNORE INTO source (topic, topic_id) VALUES (%s, %s)", (topic, topic_id))
        cursor.execute("SELECT source FROM source WHERE topic = %s AND topic_id = %s", (topic, topic_id))
        ((number,),) = cursor.fetchall()
    return int(number)


def _topic_id(bootstrap: str, topic: str) -> str:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        (described,) = admin.describe_topics([topic])
    if described["error_code"]:
        raise TopicError(f"topic {topic!r} is not on {bootstrap}. The Dag prepare_warehouse makes it.")
    return str(described["topic_id"])
