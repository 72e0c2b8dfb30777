"""Start, stop and watch the services of one machine. They run under supervisord, which brings back what dies."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xmlrpc.client import Fault, ServerProxy

import psutil
from supervisor.xmlrpc import SupervisorTransport

from services import health, mariadb
from services.accounts import create_accounts
from services.preflight import Unfit, check_socket_path
from services.secrets_file import ensure_secrets
from services.settings import PREFIX, ROOT, Settings, read_settings, state_folder
from services.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Report = Callable[[str], None]

MARK = "FRESHET_STACK"  # in the environment of everything that `up` starts: how `down` finds what was orphaned
PORTS = ("kafka_port", "kafka_controller_port", "mariadb_port", "airflow_port")
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
        return f"{self.name:<9} {'healthy' if self.obstacle is None else 'NOT healthy: ' + self.obstacle}"


def up(report: Report) -> Settings:
    """Start everything that does not run yet and return when all of it is healthy."""
    ensure_secrets(state_folder() / "secrets.env")
    chosen = read_settings()
    if not is_running(chosen):
        sweep(chosen, report)
        mariadb.server(chosen)  # a wrong FRESHET_MARIADBD is said here, not in a log
        check_ports(chosen)
        start_supervisor(chosen)
    migration = start_airflow_migration(chosen)
    await_health("mariadb", chosen, report)
    create_accounts(chosen)
    await_health("kafka", chosen, report)
    finish_airflow_migration(chosen, migration, report)
    start_airflow(chosen)
    await_health("airflow", chosen, report)
    return chosen


def down(report: Report) -> None:
    """Stop everything that `up` started, Airflow's tasks and their Spark applications included."""
    chosen = read_settings()
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


def status() -> list[ServiceStatus]:
    """Ask every service how it is."""
    chosen = read_settings()
    return [ServiceStatus(name, check(chosen)) for name, check in health.CHECKS.items()]


def is_running(chosen: Settings) -> bool:
    """Tell whether the supervisor answers."""
    try:
        with supervisor(chosen) as control:
            return bool(control.getPID())
    except OSError:
        return False


@contextmanager
def supervisor(chosen: Settings) -> Iterator[Any]:
    """Give the running supervisor's control interface: a proxy with the methods that the server has."""
    transport = SupervisorTransport(serverurl=f"unix://{chosen.state / 'supervisor.sock'}")
    with closing(transport):
        yield ServerProxy("http://127.0.0.1", transport=transport).supervisor


def check_ports(chosen: Settings) -> None:
    """Raise Unfit when another program listens where a service is to."""
    for name in PORTS:
        port = getattr(chosen, name)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                variable = PREFIX + name.upper()
                raise Unfit(
                    f"port {port} ({variable}) is taken by {owner_of(port)}. "
                    f"Stop that program, or choose another port: {variable}={port + 1} make demo"
                ) from None


def owner_of(port: int) -> str:
    """Name the program that listens on a port, as far as the kernel lets us see."""
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
            return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    return "another program"


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


def start_airflow_migration(chosen: Settings) -> subprocess.Popen[bytes] | None:
    """Begin to bring Airflow's database to this version, unless that is done."""
    if migrated_stamp(chosen).exists():
        return None
    with (chosen.state / "logs" / "airflow-migration.log").open("ab") as log:
        command = [sys.executable, "-m", "services.airflow", "db", "migrate"]
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)


def finish_airflow_migration(chosen: Settings, migration: subprocess.Popen[bytes] | None, report: Report) -> None:
    """Wait for the migration to end and remember that it did."""
    if migration is None:
        return
    running = lambda: None if migration.poll() is not None else "migrating"  # noqa: E731
    wait_until(running, what="Airflow's own database", seconds=START_SECONDS, report=report)
    if migration.returncode != 0:
        log = chosen.state / "logs" / "airflow-migration.log"
        raise Unfit(f"Airflow's database was not migrated, its exit code is {migration.returncode}. Read {log}")
    migrated_stamp(chosen).touch()


def migrated_stamp(chosen: Settings) -> Path:
    """The file whose presence says that Airflow's database fits this version of Airflow."""
    return chosen.state / "airflow" / f"migrated-{version('apache-airflow')}"


def start_airflow(chosen: Settings) -> None:
    """Start Airflow's components; those that run are left alone."""
    try:
        with supervisor(chosen) as control:
            control.startProcessGroup("airflow", RETURN_AT_ONCE)
    except Fault as fault:
        raise Unfit(f"Airflow did not start: {fault.faultString}. Read `make logs`.") from fault


def await_health(name: str, chosen: Settings, report: Report) -> None:
    """Wait until a service is able to work, and say how long it took."""
    took = wait_until(lambda: health.CHECKS[name](chosen), what=name, seconds=START_SECONDS, report=report)
    report(f"  {name} is healthy ({took:.0f} s)")


def sweep(chosen: Settings, report: Report, spare: tuple[str, ...] = ()) -> None:
    """End what `up` once started and nobody watches any more: politely, then for good."""
    left = [process for process in marked(chosen) if not any(word in " ".join(process.cmdline()) for word in spare)]
    if not left:
        return
    report(f"  ending {len(left)} processes that were left: {', '.join(sorted({process.name() for process in left}))}")
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            try:
                end(process)
            except psutil.NoSuchProcess:
                continue
        _, left = psutil.wait_procs(left, STOP_SECONDS / 4)


def marked(chosen: Settings) -> Iterator[psutil.Process]:
    """Find the processes that carry this stack's mark in their environment."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(chosen.state):
                yield process
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
