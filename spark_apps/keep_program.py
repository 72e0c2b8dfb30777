"""Keep a pipeline's long-running program running for as long as that is wished: `python -m spark_apps.keep_program`.

    python -m spark_apps.keep_program --pipeline sales --program enrich_stream --log FILE -- COMMAND ...

An Airflow task starts this program apart from itself. So the stream outlives the task, and Airflow's restarts. One
keeper works for each pipeline and program; that of a newer wish waits until it has ended. It restarts what ends with a
transient error: after 5 s, but not more than once a minute. What ends with a permanent error, or by itself, stays
stopped, and the wish says why.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql

from foundation.connections import login
from foundation.errors import AlreadyRunningError, FreshetError
from foundation.settings import PREFIX, SECRET_NAMES, settings
from spark_apps.running.failures import one_line
from spark_apps.running.lease import KEEPER_OF_GENERATOR, KEEPER_OF_STREAM, Lease, is_held
from spark_apps.running.starts import record_end, record_start
from spark_apps.running.stop import KEPT_BY, RUN_ID
from spark_apps.running.wish import Wish, end_wish, read_wish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foundation.connections import Login
    from spark_apps.running.wish import Program

PR_SET_PDEATHSIG = 1
LOOK_SECONDS = 1.0
SHORT_PAUSE_SECONDS, LEAST_BETWEEN_STARTS_SECONDS = 5.0, 60.0
PERMANENT = {1, 2}  # of our programs: an error that a retry cannot help, and a bad parameter
MOST_READ_BYTES = 100_000  # of a log, for its last line
END_SECONDS = 25.0  # for a program that is asked to end
PATIENCE_SECONDS = 60.0


def role(program: Program) -> str:
    """Return the role of a program's keeper, for its lease."""
    return KEEPER_OF_STREAM if program == "enrich_stream" else KEEPER_OF_GENERATOR


def _end_with_keeper() -> None:
    """Ask the kernel to send this child SIGTERM when its keeper is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Keeper:
    """Starts a program again and again, as long as that is wished.

    Args:
        loader: the account that reads the wish.
        pipeline: the program's.
        program: which one.
        command: its command line.
        log: the file that its output goes to.
        run_id: the run of Airflow that wished it. When another one wishes the program, this keeper ends.
        patience: seconds to wait for the keeper of an older wish to end.
    """

    def __init__(  # noqa: PLR0913  # what a keeper has to know
        self,
        loader: Login,
        pipeline: str,
        program: Program,
        command: Sequence[str],
        log: Path,
        *,
        run_id: str,
        patience: float,
    ) -> None:
        self._loader = loader
        self._run_id = run_id
        self._patience = patience
        self._pipeline = pipeline
        self._program: Program = program
        self._command = list(command)
        self._log = log
        self._ending = threading.Event()  # this process is asked to end; the wish stays as it is
        self._wish: Wish | None = None
        self._began_at = 0  # where the log of the newest start begins

    def run(self) -> None:
        """Keep the program running until a stop is wished, or the program has ended for good."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._ending.set())
        with self._lease() as lease:
            while self._is_wanted():
                began = time.monotonic()
                code = self._run_once(lease)
                if self._ending.is_set() or not self._is_wanted():
                    return
                if code == 0 or code in PERMANENT:
                    reason = "" if code == 0 else last_line(self._log, self._program, self._began_at)
                    end_wish(self._loader, self._pipeline, self._program, self._run_id, reason)
                    return
                lasted = time.monotonic() - began
                self._rest(max(SHORT_PAUSE_SECONDS, LEAST_BETWEEN_STARTS_SECONDS - lasted), lease)

    def _lease(self) -> Lease:
        """Return the lease when it is free. A keeper of an older wish holds it until its program has made room."""
        until = time.monotonic() + self._patience
        while is_held(self._loader, self._pipeline, role(self._program)):
            if time.monotonic() > until or not self._is_wanted():
                break  # the lease itself says that it is taken
            self._ending.wait(LOOK_SECONDS)
        return Lease(self._loader, self._pipeline, role(self._program))

    def _run_once(self, lease: Lease) -> int:
        """Start the program, and return its exit code when it has ended."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as output:
            self._began_at = output.tell()
            child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**self._environment(), KEPT_BY: str(os.getpid()), RUN_ID: self._run_id},
                # The stream looks whether its keeper lives; the generator knows of no keeper.
                preexec_fn=_end_with_keeper if self._program == "generator" else None,  # noqa: PLW1509  # one system call
            )
        start = self._recorded(child.pid)
        while child.poll() is None:
            if self._ending.wait(LOOK_SECONDS) or (self._program == "generator" and not self._is_wanted()):
                self._end(child)
                break
            lease.keep()
        if start is not None:
            with suppress(pymysql.Error):
                record_end(self._loader, start, child.returncode, last_line(self._log, self._program, self._began_at))
        return child.returncode

    def _environment(self) -> dict[str, str]:
        """Return the program's variables: the generator needs no secret."""
        hidden = {PREFIX + name.upper() for name in SECRET_NAMES} if self._program == "generator" else set()
        return {name: value for name, value in os.environ.items() if name not in hidden}

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(END_SECONDS)
            return
        child.kill()
        child.wait()

    def _recorded(self, pid: int) -> int | None:
        with suppress(pymysql.Error):
            return record_start(self._loader, self._pipeline, self._program, pid)
        return None

    def _is_wanted(self) -> bool:
        """Return whether the program is to run by our wish; a warehouse that does not answer changes nothing."""
        with suppress(pymysql.Error):
            self._wish = read_wish(self._loader, self._pipeline, self._program)
        is_ours = self._wish is not None and self._wish.running and self._wish.run_id == self._run_id
        return is_ours and not self._ending.is_set()

    def _rest(self, seconds: float, lease: Lease) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._is_wanted():
            self._ending.wait(LOOK_SECONDS)
            lease.keep()


def last_line(log: Path, program: Program, since: int) -> str:
    """Return the last line that the program itself has written behind a place of its log, not Spark's."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - MOST_READ_BYTES))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        ours = [line for line in lines if line.startswith((f"{program}: ", "acknowledged ", "error: "))]
        errors = [line for line in lines if "Error" in line or "Exception" in line]  # a JVM's, for example
        return (ours or errors or [""])[-1]
    return ""


def main() -> None:
    """Keep one program."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.keep_program", description=__doc__)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--program", required=True, choices=("enrich_stream", "generator"))
    parser.add_argument("--log", required=True, type=Path)
    parser.add_argument("--run-id", default="", help="the run of Airflow that wished the program")
    parser.add_argument("--patience", type=float, default=PATIENCE_SECONDS, help="seconds to wait for an older keeper")
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    try:
        keeper = Keeper(
            login("loader", settings()), asked.pipeline, asked.program, asked.command, asked.log,
            run_id=asked.run_id, patience=asked.patience,
        )  # fmt: skip
        keeper.run()
    except AlreadyRunningError:
        print(f"keep_program: pipeline {asked.pipeline!r}: {asked.program} has a keeper already", flush=True)
    except (FreshetError, pymysql.MySQLError) as failure:
        sys.exit(f"keep_program: {one_line(failure)}")


if __name__ == "__main__":
    main()
