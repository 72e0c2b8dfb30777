"""What is measured from outside, while the application runs: rows that are visible, processor time, memory."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import psutil

from foundation.connections import connect, login

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.stream.programs import Program
    from foundation.settings import Settings

LOOK_SECONDS = 0.02
SAMPLE_SECONDS = 3.0  # to read a worker's memory delays the worker
LANDED = "SELECT kafka_partition, next_offset FROM progress WHERE pipeline = %s"


@dataclass(frozen=True)
class Look:
    """What is visible at a moment of Unix time: by Kafka partition, the offset before which all rows are visible."""

    moment: float
    offsets: dict[int, int]

    @property
    def events(self) -> int:
        """How many events are visible."""
        return sum(self.offsets.values())


def looks(config: Settings, pipeline: str, program: Program) -> Iterator[Look]:
    """Look at `progress` repeatedly: it is written in the transaction of the rows, so it shows which are visible."""
    with connect(login("reader", config)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        while True:
            program.check()
            cursor.execute(LANDED, (pipeline,))
            yield Look(time.time(), {int(part): int(offset) for part, offset in cursor.fetchall()})
            connection.commit()
            time.sleep(LOOK_SECONDS)


@dataclass
class Sampled:
    """The most that a Python worker used at any moment, in bytes.

    Attributes:
        anonymous: memory of its own.
        proportional: that, and its share of files and of memory that several processes share (PSS).
        workers: how many there were at once.
    """

    anonymous: int = 0
    proportional: int = 0
    workers: int = 0


@contextmanager
def memory_of(program: Program) -> Iterator[Sampled]:
    """Sample the memory of a program's Python workers during the block."""
    sampled, stop = Sampled(), Event()

    def sample() -> None:
        while not stop.wait(SAMPLE_SECONDS):
            workers = program.workers()
            sampled.workers = max(sampled.workers, len(workers))
            for worker in workers:
                with suppress(OSError):
                    used = rollup(worker.pid)
                    sampled.anonymous = max(sampled.anonymous, used["Anonymous"])
                    sampled.proportional = max(sampled.proportional, used["Pss"])

    thread = Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield sampled
    finally:
        stop.set()
        thread.join()


def rollup(pid: int) -> dict[str, int]:
    """Return the kernel's sums over a process' memory, in bytes."""
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}


def processor_seconds(config: Settings, program: Program) -> dict[str, float]:
    """Return processor seconds so far, by part of the system."""
    spent = dict.fromkeys(("Spark's JVM", "Python workers", "MariaDB", "Kafka"), 0.0)
    workers = program.workers()
    for process in [*program.family(), *services_of(config)]:
        with suppress(psutil.NoSuchProcess):  # it ended while it was looked at: no part of the system
            part = "Python workers" if process in workers else _part_of(process.cmdline())
            if part in spent:
                times = process.cpu_times()
                spent[part] += times.user + times.system
    return spent


def services_of(config: Settings) -> list[psutil.Process]:
    """Return the processes of the benchmark's own services."""
    supervisor = int((config.state / "supervisord.pid").read_text())
    children: list[psutil.Process] = psutil.Process(supervisor).children(recursive=True)
    return children


def _part_of(command: list[str]) -> str:
    """Return the part of the system that a command line belongs to, an empty text if none."""
    if "kafka.Kafka" in command:
        return "Kafka"
    program = Path(command[0]).name if command else ""
    return {"java": "Spark's JVM", "mariadbd": "MariaDB"}.get(program, "")
