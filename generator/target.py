"""Where a stream is asked to go."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from generator.settings import SettingError, StreamSettings

SinkKind = Literal["kafka", "json", "parquet", "stdout", "none"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where the stream goes.

    Attributes:
        sink: "kafka", "json" or "parquet" (a file), "stdout" (JSON) or "none" (count only).
        bootstrap: Kafka's host:port.
        topic: Kafka's topic.
        create_partitions: Creates a missing topic with so many partitions; None leaves topics alone.
        path: The file.
        processes: Processes that share the stream's events; for "kafka" and "none".
    """

    sink: SinkKind
    bootstrap: str | None = None
    topic: str | None = None
    create_partitions: int | None = None
    path: Path | None = None
    processes: int = 1

    def check(self, settings: StreamSettings) -> None:
        """Name what is missing or does not fit, before anything starts."""
        kafka, file = self.sink == "kafka", self.sink in ("json", "parquet")
        if self.sink not in get_args(SinkKind):
            raise SettingError(f"sink: must be one of {get_args(SinkKind)}, got {self.sink!r}; choose one")
        if any((given is not None) != kafka for given in (self.bootstrap, self.topic)):
            raise SettingError(
                f"bootstrap and topic: are for sink 'kafka', which needs both, got {self.bootstrap!r} and"
                f" {self.topic!r} with sink {self.sink!r}; give both or choose another sink"
            )
        if file != (self.path is not None):
            raise SettingError(
                f"path: is for the sinks 'json' and 'parquet', which need it, got {self.path!r} with sink"
                f" {self.sink!r}; give a path or choose another sink"
            )
        if self.processes < 1 or (self.processes > 1 and self.sink not in ("kafka", "none")):
            raise SettingError(
                f"processes: must be 1, or more for sink 'kafka' or 'none', got {self.processes} with sink"
                f" {self.sink!r}; leave it out"
            )
        if self.create_partitions is not None and (not kafka or self.create_partitions < 1):
            raise SettingError(
                f"partitions: must be 1 or more and is for sink 'kafka', got {self.create_partitions}; leave it out"
            )
        if self.sink == "parquet" and settings.malformed > 0:
            raise SettingError(
                f"malformed: must be 0 for sink 'parquet', whose columns hold no malformed event,"
                f" got {settings.malformed}; use sink 'json'"
            )
