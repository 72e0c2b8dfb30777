"""The real application with a clock in each task: how long it waits for events, parses, joins, formats and loads.

Each task appends one line of JSON, seconds by phase, to the file that FRESHET_BENCH_PHASES names.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from semistream.joins.chybridjoin import CHybridJoin

from spark_apps import enrich_stream
from spark_apps.enriching import enricher as enrichment
from spark_apps.enriching import landing
from spark_apps.events.reader import EventReader
from spark_apps.running import query as stream
from spark_apps.warehouse import bulk_load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

WRITES_TO = "FRESHET_BENCH_PHASES"
PHASES: dict[str, list[tuple[Any, str]]] = {
    "parse": [(EventReader, "read")],
    "join": [(CHybridJoin, "feed"), (CHybridJoin, "finish")],
    "format": [(bulk_load, "bulk_rows"), (landing, "uuid_bytes")],
    "load": [(landing, "load")],
}


class Clock:
    """Seconds by phase; a phase within another one is taken out of the outer one."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._phases = ["rest"]
        self._since = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the block as this phase."""
        self._turn()
        self._phases.append(name)
        try:
            yield
        finally:
            self._turn()
            self._phases.pop()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a clock around it."""

        @wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # as the function has them
            with self.phase(name):
                return function(*arguments, **named)

        return run

    def arrivals(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the wait for each batch."""
        coming = iter(batches)
        while True:
            with self.phase("wait"):
                batch = next(coming, None)
            if batch is None:
                return
            yield batch

    def _turn(self) -> None:
        now = time.perf_counter()
        self.seconds[self._phases[-1]] += now - self._since
        self._since = now


@dataclass(frozen=True)
class TimedEnricher(enrichment.Enricher):
    """The enricher, timed."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the task and write down what it took."""
        clock = Clock()
        with ExitStack() as patches:
            for phase, functions in PHASES.items():
                for owner, name in functions:
                    patches.enter_context(patch.object(owner, name, clock.timed(phase, getattr(owner, name))))
            yield from super().__call__(clock.arrivals(batches))
        with clock.phase("end"), Path(os.environ[WRITES_TO]).open("a") as file:
            file.write(json.dumps(clock.seconds) + "\n")


if __name__ == "__main__":
    with patch.object(stream, "Enricher", TimedEnricher):
        enrich_stream.main()
