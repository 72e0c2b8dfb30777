"""What is done, and not done, before a batch begins."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from foundation.connections import login
from spark_apps.pipeline.definition import load_pipeline
from spark_apps.pipeline.topics import Source
from spark_apps.running.lease import Lease, request_stop
from spark_apps.running.query import StopAskedError, Stream
from spark_apps.watching.batch_counters import BatchCounters

if TYPE_CHECKING:
    from foundation.settings import Settings

pytestmark = pytest.mark.integration


def test_no_batch_begins_after_a_request_to_stop(migrated: Settings) -> None:
    """The batch itself sees it: whoever watches the query looks once a second, and batches may be quicker."""
    pipeline, loader = load_pipeline("sales"), login("loader", migrated)
    stop = threading.Event()
    source = Source(1, migrated.kafka_bootstrap, pipeline.source.topic, "none")
    stream = Stream(migrated, pipeline, source, "product_key", stop)
    with Lease(loader, pipeline.name):
        request_stop(loader, pipeline.name)
        with pytest.raises(StopAskedError):
            stream.write(BatchCounters(migrated, pipeline), Mock(), 0, takes_back=False)
    assert stop.is_set()
