"""The application over a master data store that is slow while the file named by a variable exists.

Nearly every event has to wait for a page.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from semistream import PageFile

from spark_apps import enrich_stream
from spark_apps.enriching.enricher import Enricher
from spark_apps.enriching.worker_join import Joins
from tests.spark_apps.shedding_stream import few_cached

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from semistream import SemiStreamJoin
    from semistream.relation import Page

    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.pipeline.join_plan import JoinPlan

SLOW_WHILE = "FRESHET_TEST_SLOW_WHILE"
PAGE_SECONDS = 2.0


class SlowPageFile(PageFile):
    """A page file whose pages take a set time to read while the store is slow."""

    def _read(self, page: int) -> tuple[Page, int]:
        if Path(os.environ[SLOW_WHILE]).exists():
            time.sleep(PAGE_SECONDS)
        return super()._read(page)


_of_this_worker = Joins(few_cached, SlowPageFile)


def slow_join(
    pipeline: Pipeline, events: pa.Schema, snapshot: Path, plan: JoinPlan
) -> AbstractContextManager[SemiStreamJoin]:
    """Return the worker's own join; in this program it reads the slow store."""
    return _of_this_worker(pipeline, events, snapshot, plan)


if __name__ == "__main__":
    from tests.spark_apps import slow_stream  # by its name, so that workers find what they unpickle

    enrich_stream.main(partial(Enricher, borrow=slow_stream.slow_join))
