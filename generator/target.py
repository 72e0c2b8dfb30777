"""The target of a stream: a sink, and the processes that write to it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from generator.settings import SettingError, StreamSettings

SinkKind = Literal["kafka", "json", "parquet", "stdout", "none"]

MAX_PROCESSES = 256
MAX_PARTITIONS = 10_000
_MAX_PORT = 65_535
_TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host.strip()) and re.fullmatch(r"[0-9]{1,5}", port) is not None and 1 <= int(port) <= _MAX_PORT


@dataclass(frozen=True, kw_only=True)
class Target:
    """The sink of a stream, and the processes that write to it.

    Attributes:
        sink: "kafka", "json" or "parquet" (a file), "stdout" (JSON) or "none" (count only).
        bootstrap: Kafka's host:port.
        topic: Kafka's topic.
        create_partitions: Number of partitions with which to create a missing topic; None creates no topic.
        path: The file of sink "json" or "parquet".
        processes: Number of processes that share the stream; more than 1 only for "kafka" and "none".
    """

    sink: SinkKind
    bootstrap: str | None = None
    topic: str | None = None
    create_partitions: int | None = None
    path: Path | None = None
    processes: int = 1

    def check(self, settings: StreamSettings) -> None:
        """Raise SettingError for a field that is missing or breaks its rule."""
        kafka, file = self.sink == "kafka", self.sink in ("json", "parquet")
        if self.sink not in get_args(SinkKind):
            raise SettingError(f"sink: must be one of {get_args(SinkKind)}, got {self.sink!r}; choose one")
        if any((given is not None) != kafka for given in (self.bootstrap, self.topic)):
            raise SettingError(
                f"bootstrap and topic: are for sink 'kafka', which needs both, got {self.bootstrap!r} and"
                f" {self.topic!r} with sink {self.sink!r}; give both or choose another sink"
            )
        if self.bootstrap is not None and not all(map(_is_address, self.bootstrap.split(","))):
            raise SettingError(
                f"bootstrap: must be host:port with a port of 1 to {_MAX_PORT}, or several with commas between them,"
                f" got {self.bootstrap!r}; Kafka's own port is 9092"
            )
        if self.topic is not None and not _TOPIC.fullmatch(self.topic):
            raise SettingError(
                "topic: must be 1 to 249 letters, digits, dots, underscores and hyphens, and not '.' or '..',"
                f" got {self.topic!r}; Kafka allows no other name"
            )
        if file != (self.path is not None):
            raise SettingError(
                f"path: is for the sinks 'json' and 'parquet', which need it, got {self.path!r} with sink"
                f" {self.sink!r}; give a path or choose another sink"
            )
        most = MAX_PROCESSES if self.sink in ("kafka", "none") else 1
        if not 1 <= self.processes <= most:
            raise SettingError(
                f"processes: must be 1, or up to {MAX_PROCESSES} for sink 'kafka' or 'none', got {self.processes}"
                f" with sink {self.sink!r}; leave it out"
            )
        if self.create_partitions is not None and not (kafka and 1 <= self.create_partitions <= MAX_PARTITIONS):
            raise SettingError(
                f"partitions: must be 1 to {MAX_PARTITIONS} and is for sink 'kafka', got {self.create_partitions};"
                " leave it out"
            )
        if self.sink == "parquet" and settings.malformed > 0:
            raise SettingError(
                f"malformed: must be 0 for sink 'parquet', whose columns hold no malformed event,"
                f" got {settings.malformed}; use sink 'json'"
            )
