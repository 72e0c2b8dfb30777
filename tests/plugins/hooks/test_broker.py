"""The broker's address comes from the connection `kafka_default`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from foundation.errors import ConnectionFieldError
from plugins.hooks.broker import BrokerHook

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_address_is_in_the_connections_extra(connect_to: Callable[..., None]) -> None:
    """The extra of the connection has the address in the form of Kafka clients, also for several brokers."""
    connect_to("kafka_default", conn_type="kafka", extra={"bootstrap.servers": "one:9092,two:9092"})
    assert BrokerHook().bootstrap() == "one:9092,two:9092"


def test_a_connection_without_an_address_says_where_to_set_it(connect_to: Callable[..., None]) -> None:
    """The error states the connection, the missing field of its extra, and the page in Airflow."""
    connect_to("kafka_default", conn_type="kafka", host="one", port=9092)
    with pytest.raises(ConnectionFieldError) as caught:
        BrokerHook().bootstrap()
    assert "'kafka_default'" in str(caught.value)
    assert '{"bootstrap.servers": "host:port"} in its field `extra`. ' in str(caught.value)
    assert "Admin, Connections" in caught.value.remedy
