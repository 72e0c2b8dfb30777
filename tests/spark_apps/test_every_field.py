"""Optional fields, nested paths, every type of field, and what is beside an event, through the real stream."""

from __future__ import annotations

import base64
import json
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaProducer

from foundation.connections import connect, login
from tests.spark_apps.application import SECONDS, Application, application_on
from tests.topics import read_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings

pytestmark = pytest.mark.integration
MASTER = """CREATE OR REPLACE TABLE article (
    article INT NOT NULL PRIMARY KEY, article_key INT UNSIGNED NOT NULL UNIQUE, title VARCHAR(80) NULL,
    updated_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))"""
ID = "01890f3c-1f2e-7cc3-98c4-dc0c0c07398f"
TAGS = {"colours": ["red", "grün"], "deep": [[[[1.50]]]], "quote": '"'}
BYTES = bytes(range(256))[1:]
FULL: dict[str, Any] = {
    "OrderId": ID.upper(),
    "line": {
        "items": [{"article-no": "7", "sku": None}, {"article-no": 9, "options": {"size": "L"}}],
        "total amount": "1234.5",
    },
    "coupon": 'line\nbreak "quoted"',
    "channel": "phone",
    "gift": True,
    "due": "2026-02-28",
    "tags": TAGS,
    "signature": base64.b64encode(BYTES).decode(),
    "weight": 0.1 + 0.2,
    "meta": {"placed": "2026-07-02 03:04:05.678901", "sent": 1767323045678, "paid": 1767323045.5},
}
FULL_MESSAGE: dict[str, Any] = {
    "key": b"42",
    "headers": [("other", b"\xff"), ("trace-id", "tracé 1".encode()), ("trace-id", b"the second one")],
}
RECEIVED = datetime.now(UTC).replace(microsecond=678000, tzinfo=None)  # the broker removes what is older than a week
FULL_ROW = (
    ID, 107, 7, 9, Decimal("1234.500"), 'line\nbreak "quoted"', "phone", 1, date(2026, 2, 28), json.dumps(TAGS), BYTES,
    0.1 + 0.2, datetime(2026, 7, 2, 1, 4, 5, 678000), datetime(2026, 1, 2, 3, 4, 5, 678000),  # noqa: DTZ001
    datetime(2026, 1, 2, 3, 4, 5, 500000), "article 7", 42, "tracé 1", RECEIVED,  # noqa: DTZ001
)  # fmt: skip
EMPTY: dict[str, Any] = {
    "OrderId": ID,
    "line": {"items": [{"article-no": 8}], "total amount": -0.001},
    "meta": {"placed": "2026-01-02T03:04:05+00:00", "sent": 0},
}
EMPTY_ROW = (
    ID, 108, 8, None, Decimal("-0.001"), None, "shop", 0, None, None, None,
    None, datetime(2026, 1, 2, 3, 4, 5), datetime(1970, 1, 1), None, "article 8",  # noqa: DTZ001
    None, "none", RECEIVED,
)  # fmt: skip
NULLS = {**EMPTY, **dict.fromkeys(("coupon", "channel", "gift", "due", "tags", "signature", "weight"))}
NO_KEY = {**EMPTY, "line": {"items": [{"article-no": None}], "total amount": 0}}
REJECTED = {
    "article: missing": {**EMPTY, "line": {"items": [], "total amount": 0}},
    "sent_at: missing": {**EMPTY, "meta": {"placed": "2026-01-02T03:04:05"}},
    "amount: must be a number with at most 9 digits before the point and 3 behind it, got '1.2345'": {
        **EMPTY,
        "line": {"items": [{"article-no": 8}], "total amount": "1.2345"},
    },
    "due: must be a date like 2026-01-02, in the years 1000 to 9999, got '28.2.2026'": {**EMPTY, "due": "28.2.2026"},
}
COLUMNS = (
    "order_id, article_key, article, second, amount, coupon, channel, gift, due, tags, signature, weight, placed_at, "
    "sent_at, paid_at, title, shard, trace, received_at"
)


@pytest.fixture(scope="module")
def application(migrated: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Yield the application, with every kind of order landed."""
    with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute(MASTER)
        cursor.executemany(
            "INSERT INTO article (article, article_key, title) VALUES (%s, %s, %s)",
            [(number, 100 + number, f"article {number}") for number in range(20)],
        )
    with application_on(migrated, "orders", tmp_path_factory.mktemp("orders")) as made:
        made.start()
        with closing(KafkaProducer(bootstrap_servers=migrated.kafka_bootstrap)) as producer:
            moment = round(RECEIVED.replace(tzinfo=UTC).timestamp() * 1000)
            for order in (FULL, EMPTY, NULLS, NO_KEY, *REJECTED.values()):
                beside = FULL_MESSAGE if order is FULL else {}
                producer.send("orders", json.dumps(order).encode(), timestamp_ms=moment, **beside).get(SECONDS)
        made.wait_until_caught_up()
        yield made


def test_every_type_lands_in_a_column_of_its_type(application: Application) -> None:
    """Nested values, nulls, defaults and every type are in the enriched table and in the view as the event has them."""
    landed = [FULL_ROW, EMPTY_ROW, EMPTY_ROW]
    assert application.rows(f"SELECT {COLUMNS} FROM orders_enriched ORDER BY article") == landed
    assert application.rows(f"SELECT {COLUMNS} FROM orders ORDER BY article") == landed


def test_an_order_without_a_key_is_unmatched_and_unreadable_ones_are_named(application: Application) -> None:
    """A null key is unmatched, with defaults where it has nothing; a reason has field, rule and value."""
    unmatched = application.rows("SELECT article, channel, gift, coupon, amount FROM orders_unmatched")
    assert unmatched == [(None, "shop", 0, None, Decimal("0.000"))]
    assert {reason for (reason,) in application.rows("SELECT reason FROM orders_rejected")} == {*REJECTED}


def test_the_enriched_topic_has_every_type(application: Application) -> None:
    """Messages have JSON as JSON, bytes as base64, booleans as booleans, and null for what is null."""
    messages = read_messages(application.running.kafka_bootstrap, "orders.enriched")
    shown = {record.key: json.loads(record.value, parse_float=Decimal) for record in messages}
    assert shown[b"7"] == {
        "order_id": ID, "article_key": 107, "article": 7, "second": 9, "amount": Decimal("1234.500"),
        "coupon": 'line\nbreak "quoted"', "channel": "phone", "gift": True, "due": "2026-02-28",
        "tags": json.loads(json.dumps(TAGS), parse_float=Decimal), "signature": base64.b64encode(BYTES).decode(),
        "weight": Decimal("0.30000000000000004"), "placed_at": "2026-07-02T01:04:05.678Z",
        "sent_at": "2026-01-02T03:04:05.678Z", "paid_at": "2026-01-02T03:04:05.500Z", "title": "article 7",
        "grams": Decimal("300.00000000000006"), "shard": 42, "trace": "tracé 1",
        "received_at": f"{RECEIVED:%Y-%m-%dT%H:%M:%S}.678Z",
    }  # fmt: skip
    nothing = ("second", "coupon", "due", "tags", "signature", "weight", "paid_at", "grams")
    assert {name: shown[b"8"][name] for name in nothing} == dict.fromkeys(nothing)
    assert (shown[b"8"]["channel"], shown[b"8"]["gift"], shown[b"8"]["amount"]) == ("shop", False, Decimal("-0.001"))
