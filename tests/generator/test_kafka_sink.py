"""What the generator promises about Kafka, against a real broker."""

import json

import pytest

from generator import StreamSettings, Target, run_stream
from tests.generator.broker import Broker

pytestmark = pytest.mark.integration


def test_topic_holds_exactly_the_acknowledged_events(broker: Broker) -> None:
    """Every acknowledged event is in the topic once, under its product id as key."""
    topic = broker.new_topic(partitions=3)
    report = run_stream(
        StreamSettings(keys=1000, events=20_000, seed=7), Target(sink="kafka", bootstrap=broker.bootstrap, topic=topic)
    )
    messages = broker.read(topic)
    assert report.complete
    assert report.acknowledged == len(messages) == 20_000
    events = [json.loads(value) for _, _, value in messages]
    assert len({event["event_id"] for event in events}) == 20_000
    assert all(int(key) == event["product_id"] for (_, key, _), event in zip(messages, events, strict=True))
