"""A batch checks for a stop request before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from foundation.connections import login
from spark_apps.monitoring.batch_counters import BatchCounters
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.running.query import Query
from spark_apps.running.stop import Stop, StopAskedError
from spark_apps.running.wish import wish_stopped

if TYPE_CHECKING:
    from foundation.settings import Settings

pytestmark = pytest.mark.integration


def test_no_batch_begins_after_a_request_to_stop(catalogue: Settings, topics: Settings) -> None:
    """Each batch checks the stop request itself, because a batch can be shorter than the monitor's second."""
    assert topics
    pipeline, loader = read_pipeline("sales"), login("loader", catalogue)
    asked = Stop(loader, pipeline.name)
    query = Query(catalogue, pipeline, asked, BatchCounters(catalogue, pipeline))
    wish_stopped(loader, pipeline.name, "enrich_stream", by="test")
    with pytest.raises(StopAskedError):
        query.write(Mock(), 0, replays=False)
    assert asked.is_asked
