"""The real application with nothing joined: each event gets two columns made from its key instead of the master row's.

Everything else is as it is: source, parsing, format, loading, transactions, rows of the same width. The joins' kernels
are loaded, so the additional memory of a worker with a join is what the join holds.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyarrow import compute
from semistream.relation import Counters
from semistream.warm_up import warm_up

from spark_apps import enrich_stream
from spark_apps.enriching.enricher import Enricher
from spark_apps.enriching.task_join import joined_part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_apps.enriching.worker_join import BorrowJoin
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.pipeline.join_plan import JoinPlan


PRICE = 2_000  # in cents; as many digits as most prices have


class NoJoin:
    """Takes the place of a join in the enricher; its counters stay 0."""

    def __init__(self, key: list[str], events: pa.Schema) -> None:
        self.on = key
        self.stream = joined_part(events, key)
        self.front_stage = SimpleNamespace(hits=0)
        self.relation = SimpleNamespace(counters=Counters())

    def preload(self) -> None:
        """Do nothing: there is nothing to load."""

    def feed(self, events: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return the batch with the columns that a join would add."""
        prices = compute.add(compute.bit_wise_and(events["product_id"], 1023), PRICE)
        return [
            events.append_column("product_key", events["product_id"].cast(pa.uint32())).append_column(
                "price_cents", prices.cast(pa.uint32())
            )
        ]

    def finish(self) -> list[pa.RecordBatch]:
        """Return nothing, because no event waits."""
        return []


@contextmanager
def no_join(pipeline: Pipeline, events: pa.Schema, snapshot: Path, plan: JoinPlan) -> Iterator[NoJoin]:  # noqa: ARG001  # BorrowJoin's interface
    """Lend a NoJoin as the worker's join."""
    warm_up()
    yield NoJoin(pipeline.master.key, events)


if __name__ == "__main__":
    from benchmarks.stream import passing_stream  # by its name, so that workers find what they unpickle

    enrich_stream.main(partial(Enricher, borrow=cast("BorrowJoin", passing_stream.no_join)))
