"""Start, check and end Spark programs as processes of the benchmark."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psutil

from foundation import spark_launch
from foundation.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from foundation.settings import Settings

END_SECONDS = 60.0
JDBC_JARS = ROOT / ".freshet" / "benchmarks" / "jars"


class ProgramError(Exception):
    """A program failed; the message has the end of what it wrote."""


class Program:
    """One spark-submit with all its processes."""

    def __init__(
        self, config: Settings, script: Path, *arguments: object, jars: Path | None = None, memory: str = "2g"
    ) -> None:
        more_jars = tuple(jars.glob("*.jar")) if jars else ()
        self._script = script
        self._log = config.state / "logs" / f"{script.stem}.log"
        self._output = self._log.open("w+b")
        self._process = subprocess.Popen(
            spark_launch.submit(
                script, *arguments, master=config.spark_master, jars=config.jars, more_jars=more_jars, memory=memory
            ),
            env=os.environ | spark_launch.environment(),
            stdout=self._output,
            stderr=self._output,
        )

    def wait(self) -> str:
        """Wait until the program ends, and return what it wrote."""
        if self._process.wait() != 0:
            raise ProgramError(f"{self._script.name} failed: {self.written()[-3000:]}")
        return self.written()

    def check(self) -> None:
        """Raise ProgramError if the program has ended."""
        if self._process.poll() is not None:
            raise ProgramError(f"{self._script.name} has ended: {self.written()[-3000:]}")

    def written(self) -> str:
        """Return everything that the program has written so far."""
        return self._log.read_text(errors="replace")

    def family(self) -> list[psutil.Process]:
        """Return the processes of spark-submit and its descendants, none if it has ended."""
        with suppress(psutil.NoSuchProcess):
            return [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
        return []

    def workers(self) -> list[psutil.Process]:
        """Return Spark's Python workers, without the daemon that they are forked from."""
        with suppress(psutil.NoSuchProcess):
            return [worker for daemon in self._daemons() for worker in daemon.children()]
        return []

    def _daemons(self) -> list[psutil.Process]:
        return [process for process in self.family() if "pyspark.daemon" in _command_line(process)]

    def end(self) -> None:
        """Ask the driver program to end, and kill the processes that are left."""
        family = self.family()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                if self._script.name in _command_line(process) and process.name().startswith("python"):
                    process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        self._output.close()


@contextmanager
def running(config: Settings, script: Path, *arguments: object) -> Iterator[Program]:
    """Run a program during the block."""
    program = Program(config, script, *arguments)
    try:
        yield program
    finally:
        program.end()


def _command_line(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def fetch_jdbc_driver() -> None:
    """Fetch MariaDB's JDBC driver, which only the stream-static join needs."""
    if not any(JDBC_JARS.glob("*.jar")):
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={JDBC_JARS}"]
        pom = ROOT / "services" / "pom.xml"
        subprocess.run(["mvn", "-B", "-q", "-ntp", "-f", str(pom), "-P", "benchmarks", *goal], check=True)
