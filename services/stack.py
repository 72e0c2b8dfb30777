"""Start, stop and watch the services of one machine. They run under supervisord, which brings back what dies."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xmlrpc.client import Error as XmlRpcError
from xmlrpc.client import ServerProxy

import psutil
from supervisor.xmlrpc import SupervisorTransport

from foundation.errors import UnfitError
from foundation.settings import ROOT, Settings, read_settings, state_folder
from services import health, mariadb
from services.accounts import create_accounts
from services.ports import check_ports
from services.preflight import check_socket_path
from services.secrets_file import ensure_secrets
from services.started_with import check_same, forget, remember
from services.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Report = Callable[[str], None]

MARK = "FRESHET_STACK"  # in the environment of everything that `up` starts: how `down` finds what was orphaned
NOT_RUNNING = ("STOPPED", "EXITED", "FATAL")
RETURN_AT_ONCE = False  # health is awaited, not the mere start
START_SECONDS = 180.0
STOP_SECONDS = 40.0


@dataclass(frozen=True)
class ServiceStatus:
    """What `status` says of one service."""

    name: str
    obstacle: str | None

    def __str__(self) -> str:
        """One line for a person."""
        return f"{self.name:<10} {'healthy' if self.obstacle is None else 'NOT healthy: ' + self.obstacle}"


@dataclass(frozen=True)
class Started:
    """A process that some `up` started, as it was when it was found."""

    process: psutil.Process
    name: str
    command_line: str
    state: Path


def up(report: Report, *, airflow: bool = True) -> Settings:
    """Start everything, or all but Airflow, that does not run yet and return when it is healthy."""
    ensure_secrets(state_folder() / "secrets.env")
    chosen = read_settings()
    ensure_supervisor(chosen, report)
    to_migrate = airflow and not migrated_stamp(chosen).exists()
    start_programs(chosen, "kafka", "mariadb", *(["airflow-migration"] if to_migrate else []))
    await_health("mariadb", chosen, report)
    create_accounts(chosen)
    await_health("kafka", chosen, report)
    if to_migrate:
        await_airflow_migration(chosen, report)
    if airflow:
        start_programs(chosen, "airflow")
        await_health("airflow", chosen, report)
    return chosen


def down(report: Report) -> None:
    """Stop everything that `up` started with these settings."""
    end(read_settings(), report)


def down_below(folder: Path, report: Report) -> None:
    """Stop every stack whose state lies below a folder that is to be removed."""
    chosen = read_settings()
    for state in sorted({each.state for each in started() if each.state.is_relative_to(folder.resolve())}):
        end(chosen.model_copy(update={"state": state}), report)


def end(chosen: Settings, report: Report) -> None:
    """Stop a stack, Airflow's tasks and their Spark applications included."""
    if is_running(chosen):
        with supervisor(chosen) as control:
            supervisor_process = psutil.Process(control.getPID())
            report("  stopping Airflow")
            control.stopProcessGroup("airflow")
        sweep(chosen, report, spare=("supervisord", "services.kafka", "kafka.Kafka", "mariadbd"))
        report("  stopping Kafka and MariaDB")
        with supervisor(chosen) as control:
            control.shutdown()
        psutil.wait_procs([supervisor_process], STOP_SECONDS)
    sweep(chosen, report)
    forget(chosen)


def status() -> list[ServiceStatus]:
    """Ask every service how it is."""
    chosen = read_settings()
    obstacle = None if is_running(chosen) else "it does not run, and brings nothing back. Type: make up"
    return [
        ServiceStatus("supervisor", obstacle),
        *(ServiceStatus(name, check(chosen)) for name, check in health.CHECKS.items()),
    ]


def is_running(chosen: Settings) -> bool:
    """Tell whether the supervisor answers."""
    try:
        with supervisor(chosen) as control:
            return bool(control.getPID())
    except UnfitError:
        return False


@contextmanager
def supervisor(chosen: Settings) -> Iterator[Any]:
    """Give the running supervisor's control interface: a proxy with the methods that the server has."""
    transport = SupervisorTransport(serverurl=f"unix://{chosen.state / 'supervisor.sock'}")
    try:
        with closing(transport):
            yield ServerProxy("http://127.0.0.1", transport=transport).supervisor
    except (OSError, HTTPException, XmlRpcError) as error:
        log = chosen.state / "logs" / "supervisord.log"
        raise UnfitError(
            f"the services are being stopped, or never ran ({error})", f"Type: make up (their log: {log})"
        ) from error


def ensure_supervisor(chosen: Settings, report: Report) -> None:
    """Start the supervisor unless it runs; what an earlier one has left is ended first."""
    if is_running(chosen):
        check_same(chosen)
        return
    sweep(chosen, report)
    mariadb.server(chosen)  # a wrong FRESHET_MARIADBD is said here, not in a log
    check_ports(chosen)
    remember(chosen)
    start_supervisor(chosen)


def start_supervisor(chosen: Settings) -> None:
    """Start supervisord, which makes itself a daemon and so outlives this command."""
    check_socket_path(chosen.state / "supervisor.sock")
    (chosen.state / "logs").mkdir(exist_ok=True)
    environment = {
        **os.environ,
        MARK: str(chosen.state),
        "SPT_NOENV": "1",  # setproctitle, which Airflow uses, would write its titles over the mark
        "FRESHET_STATE": str(chosen.state),
        "FRESHET_RUN": sys.executable,
    }
    program = Path(sys.executable).with_name("supervisord")
    configuration = ROOT / "services" / "supervisord.conf"
    subprocess.run([program, "-c", configuration], cwd=ROOT, env=environment, check=True)
    wait_until(lambda: None if is_running(chosen) else "no answer yet", what="the supervisor", seconds=START_SECONDS)


def await_airflow_migration(chosen: Settings, report: Report) -> None:
    """Wait until Airflow's database is of this version, and remember that it is."""

    def obstacle() -> str | None:
        (program,) = programs(chosen, "airflow-migration")
        done = (program["statename"], program["exitstatus"]) == ("EXITED", 0)
        if program["statename"] in NOT_RUNNING and not done:
            raise UnfitError(
                "Airflow's database was not migrated", f"Read {program['stdout_logfile']}, then type: make up"
            )
        return None if done else "migrating"

    wait_until(obstacle, what="Airflow's own database", seconds=START_SECONDS, report=report)
    migrated_stamp(chosen).touch()


def migrated_stamp(chosen: Settings) -> Path:
    """The file whose presence says that Airflow's database fits this version of Airflow."""
    return chosen.state / "airflow" / f"migrated-{version('apache-airflow')}"


def start_programs(chosen: Settings, *groups: str) -> None:
    """Start the programs of these groups that do not run: not yet, or not any more since they failed too often."""
    with supervisor(chosen) as control:
        for group in groups:
            control.startProcessGroup(group, RETURN_AT_ONCE)


def programs(chosen: Settings, group: str) -> list[dict[str, Any]]:
    """Return what the supervisor says of each program of a group."""
    with supervisor(chosen) as control:
        return [program for program in control.getAllProcessInfo() if program["group"] == group]


def await_health(name: str, chosen: Settings, report: Report) -> None:
    """Wait until a service is able to work, and say how long it took."""

    def obstacle() -> str | None:
        given_up = [program for program in programs(chosen, name) if program["statename"] == "FATAL"]
        if given_up:
            raise UnfitError(f"{name} does not start", f"Read {given_up[0]['stdout_logfile']}, then type: make up")
        return health.CHECKS[name](chosen)

    took = wait_until(obstacle, what=name, seconds=START_SECONDS, report=report)
    report(f"  {name} is healthy ({took:.0f} s)")


def sweep(chosen: Settings, report: Report, spare: tuple[str, ...] = ()) -> None:
    """End what `up` once started and nobody watches any more: politely, then for good."""
    found = [
        each
        for each in started()
        if each.state == chosen.state and not any(word in each.command_line for word in spare)
    ]
    if not found:
        return
    report(f"  ending {len(found)} processes that were left: {', '.join(sorted({each.name for each in found}))}")
    left = [each.process for each in found]
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                end(process)
        _, left = psutil.wait_procs(left, STOP_SECONDS / 4)


def marked(chosen: Settings) -> list[psutil.Process]:
    """Find the processes that carry this stack's mark in their environment."""
    return [each.process for each in started() if each.state == chosen.state]


def started() -> Iterator[Started]:
    """Find the processes of every stack; what is to be known of one is read at once, for it may end any moment."""
    for process in psutil.process_iter():
        with suppress(psutil.AccessDenied, psutil.NoSuchProcess):
            if mark := process.environ().get(MARK):
                yield Started(process, process.name(), " ".join(process.cmdline()), Path(mark))
