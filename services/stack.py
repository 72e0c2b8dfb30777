"""Start, stop and check the services of one machine. They run under supervisord, which restarts a service that dies."""

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
from services.started_with import check_same, remove_started_with, write_started_with
from services.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Report = Callable[[str], None]

MARK = "FRESHET_STACK"  # in the environment of every process that `up` starts: `down` finds orphans by it
NOT_RUNNING = ("STOPPED", "EXITED", "FATAL")
RETURN_AT_ONCE = False  # startProcessGroup does not wait: await_health waits for more than the start of a process
START_SECONDS = 180.0
STOP_SECONDS = 40.0


@dataclass(frozen=True)
class ServiceStatus:
    """The health of one service."""

    name: str
    obstacle: str | None

    def __str__(self) -> str:
        """One line for a person."""
        return f"{self.name:<10} {'healthy' if self.obstacle is None else 'NOT healthy: ' + self.obstacle}"


@dataclass(frozen=True)
class Started:
    """A process of a stack, and what was known of it when it was found; `state` is the stack's state folder."""

    process: psutil.Process
    name: str
    command_line: str
    state: Path


def up(report: Report, *, airflow: bool = True) -> Settings:
    """Start every service that does not run yet, with or without Airflow; return when all services are healthy."""
    ensure_secrets(state_folder() / "secrets.env")
    config = read_settings()
    ensure_supervisor(config, report)
    to_migrate = airflow and not migrated_stamp(config).exists()
    start_programs(config, "kafka", "mariadb", *(["airflow-migration"] if to_migrate else []))
    await_health("mariadb", config, report)
    create_accounts(config)
    await_health("kafka", config, report)
    if to_migrate:
        await_airflow_migration(config, report)
    if airflow:
        start_programs(config, "airflow")
        await_health("airflow", config, report)
    return config


def down(report: Report) -> None:
    """Stop everything that `up` started with these settings."""
    end(read_settings(), report)


def down_below(folder: Path, report: Report) -> None:
    """Stop every stack whose state folder is below this folder."""
    config = read_settings()
    for state in sorted({each.state for each in started() if each.state.is_relative_to(folder.resolve())}):
        end(config.model_copy(update={"state": state}), report)


def end(config: Settings, report: Report) -> None:
    """Stop a stack, including Airflow's tasks and their Spark applications."""
    if is_running(config):
        with supervisor(config) as control:
            supervisor_process = psutil.Process(control.getPID())
            report("  stopping Airflow")
            control.stopProcessGroup("airflow")
        sweep(config, report, spare=("supervisord", "services.kafka", "kafka.Kafka", "mariadbd"))
        report("  stopping Kafka and MariaDB")
        with supervisor(config) as control:
            control.shutdown()
        psutil.wait_procs([supervisor_process], STOP_SECONDS)
    sweep(config, report)
    remove_started_with(config)


def status() -> list[ServiceStatus]:
    """Check the supervisor and every service."""
    config = read_settings()
    obstacle = None if is_running(config) else "it does not run, so nothing restarts a service. Type: make up"
    return [
        ServiceStatus("supervisor", obstacle),
        *(ServiceStatus(name, check(config)) for name, check in health.CHECKS.items()),
    ]


def is_running(config: Settings) -> bool:
    """Return whether the supervisor answers."""
    try:
        with supervisor(config) as control:
            return bool(control.getPID())
    except UnfitError:
        return False


@contextmanager
def supervisor(config: Settings) -> Iterator[Any]:
    """Open the control interface of the running supervisor: a proxy with the server's methods."""
    transport = SupervisorTransport(serverurl=f"unix://{config.state / 'supervisor.sock'}")
    try:
        with closing(transport):
            yield ServerProxy("http://127.0.0.1", transport=transport).supervisor
    except (OSError, HTTPException, XmlRpcError) as error:
        log = config.state / "logs" / "supervisord.log"
        raise UnfitError(
            f"the supervisor of the services does not answer ({error})", f"Type: make up (its log: {log})"
        ) from error


def ensure_supervisor(config: Settings, report: Report) -> None:
    """Start the supervisor unless it runs; first end the orphans of an earlier one."""
    if is_running(config):
        check_same(config)
        return
    sweep(config, report)
    mariadb.server(config)  # raises here, not in a log, when FRESHET_MARIADBD is wrong
    check_ports(config)
    write_started_with(config)
    start_supervisor(config)


def start_supervisor(config: Settings) -> None:
    """Start supervisord, which becomes a daemon and outlives this command."""
    check_socket_path(config.state / "supervisor.sock")
    (config.state / "logs").mkdir(exist_ok=True)
    environment = {
        **os.environ,
        MARK: str(config.state),
        "SPT_NOENV": "1",  # so that setproctitle, which Airflow uses, does not overwrite the mark
        "FRESHET_STATE": str(config.state),
        "FRESHET_RUN": sys.executable,
    }
    program = Path(sys.executable).with_name("supervisord")
    configuration = ROOT / "services" / "supervisord.conf"
    subprocess.run([program, "-c", configuration], cwd=ROOT, env=environment, check=True)
    wait_until(lambda: None if is_running(config) else "no answer yet", what="the supervisor", seconds=START_SECONDS)


def await_airflow_migration(config: Settings, report: Report) -> None:
    """Wait until Airflow's database fits this version, and record that it does."""

    def obstacle() -> str | None:
        (program,) = programs(config, "airflow-migration")
        done = (program["statename"], program["exitstatus"]) == ("EXITED", 0)
        if program["statename"] in NOT_RUNNING and not done:
            raise UnfitError(
                "the migration of Airflow's database failed", f"Read {program['stdout_logfile']}, then type: make up"
            )
        return None if done else "migrating"

    wait_until(obstacle, what="the migration of Airflow's database", seconds=START_SECONDS, report=report)
    migrated_stamp(config).touch()


def migrated_stamp(config: Settings) -> Path:
    """Return the path of a file that exists once Airflow's database fits this version of Airflow."""
    return config.state / "airflow" / f"migrated-{version('apache-airflow')}"


def start_programs(config: Settings, *groups: str) -> None:
    """Start the programs of these groups that do not run, including those that supervisord no longer retries."""
    with supervisor(config) as control:
        for group in groups:
            control.startProcessGroup(group, RETURN_AT_ONCE)


def programs(config: Settings, group: str) -> list[dict[str, Any]]:
    """Return the supervisor's information about each program of a group."""
    with supervisor(config) as control:
        return [program for program in control.getAllProcessInfo() if program["group"] == group]


def await_health(name: str, config: Settings, report: Report) -> None:
    """Wait until a service is healthy, and report how long that took."""

    def obstacle() -> str | None:
        given_up = [program for program in programs(config, name) if program["statename"] == "FATAL"]
        if given_up:
            raise UnfitError(f"{name} does not start", f"Read {given_up[0]['stdout_logfile']}, then type: make up")
        return health.CHECKS[name](config)

    took = wait_until(obstacle, what=name, seconds=START_SECONDS, report=report)
    report(f"  {name} is healthy ({took:.0f} s)")


def sweep(config: Settings, report: Report, spare: tuple[str, ...] = ()) -> None:
    """End the orphans of a stack: with SIGTERM first, then with SIGKILL.

    Args:
        config: the stack's settings.
        report: gets a line if there are orphans.
        spare: words; a process whose command line has one of them is left alone.
    """
    found = [
        each
        for each in started()
        if each.state == config.state and not any(word in each.command_line for word in spare)
    ]
    if not found:
        return
    report(f"  ending {len(found)} orphaned processes: {', '.join(sorted({each.name for each in found}))}")
    left = [each.process for each in found]
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                end(process)
        _, left = psutil.wait_procs(left, STOP_SECONDS / 4)


def marked(config: Settings) -> list[psutil.Process]:
    """Return all processes of one stack."""
    return [each.process for each in started() if each.state == config.state]


def started() -> Iterator[Started]:
    """Yield the processes of all stacks: those with the mark in their environment. A process that ends is left out."""
    for process in psutil.process_iter():
        with suppress(psutil.AccessDenied, psutil.NoSuchProcess):
            if mark := process.environ().get(MARK):
                yield Started(process, process.name(), " ".join(process.cmdline()), Path(mark))
