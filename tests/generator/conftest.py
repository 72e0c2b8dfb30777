"""The private Kafka broker of these tests: private, because they end and restart it."""

from collections.abc import Iterator

import pytest

from tests.generator.broker import Broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker; a test that stops it starts it again."""
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.kill()
