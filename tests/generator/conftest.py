"""The Kafka broker of these tests; they kill and restart it, so they do not share the stack's."""

from collections.abc import Iterator

import pytest

from tests.generator.broker import Broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a running broker; a test that stops it restarts it."""
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.kill()
