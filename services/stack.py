"""Start, stop and watch the services of one machine. They run under supervisord, which brings back what dies."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
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
NOT_RUNNING = ("STOPPED", "EXITED", "FATAL")
RETURN_AT_ONCE = False  # health is awaited, not the mere start
LAST_PORT = 65_535
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
    start_programs(chosen, "kafka", "mariadb")
    migration = start_airflow_migration(chosen)
    await_health("mariadb", chosen, report)
    create_accounts(chosen)
    await_health("kafka", chosen, report)
    finish_airflow_migration(chosen, migration, report)
    start_programs(chosen, "airflow")
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
    """Raise Unfit when two services are to have one port, or another program listens where a service is to."""
    ports = {name: getattr(chosen, name) for name in PORTS}
    for one, other in combinations(PORTS, 2):
        if ports[one] == ports[other]:
            names = f"{PREFIX}{one.upper()} and {PREFIX}{other.upper()}"
            raise Unfit(f"{names} are both {ports[one]}. Give each a port of its own.")
    for name, port in ports.items():
        if not is_free(port):
            variable = PREFIX + name.upper()
            better = next(each for each in range(port + 1, LAST_PORT) if each not in ports.values() and is_free(each))
            raise Unfit(
                f"port {port} ({variable}) is taken by {owner_of(port)}. "
                f"Stop that program, or choose another port: {variable}={better} make demo"
            )


def is_free(port: int) -> bool:
    """Tell whether a service could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


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
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, MARK: str(chosen.state)}, stdout=log, stderr=log)


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


def start_programs(chosen: Settings, *groups: str) -> None:
    """Start the programs of these groups that do not run: not yet, or not any more since they failed too often."""
    with supervisor(chosen) as control:
        for program in control.getAllProcessInfo():
            if program["group"] in groups and program["statename"] in NOT_RUNNING:
                with suppress(Fault):  # it has just started by itself
                    control.startProcess(f"{program['group']}:{program['name']}", RETURN_AT_ONCE)


def await_health(name: str, chosen: Settings, report: Report) -> None:
    """Wait until a service is able to work, and say how long it took."""
    took = wait_until(lambda: health.CHECKS[name](chosen), what=name, seconds=START_SECONDS, report=report)
    report(f"  {name} is healthy ({took:.0f} s)")


def sweep(chosen: Settings, report: Report, spare: tuple[str, ...] = ()) -> None:
    """End what `up` once started and nobody watches any more: politely, then for good."""
    found = [(process, name) for process, name, line in described(chosen) if not any(word in line for word in spare)]
    if not found:
        return
    report(f"  ending {len(found)} processes that were left: {', '.join(sorted({name for _, name in found}))}")
    left = [process for process, _ in found]
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                end(process)
        _, left = psutil.wait_procs(left, STOP_SECONDS / 4)


def marked(chosen: Settings) -> list[psutil.Process]:
    """Find the processes that carry this stack's mark in their environment."""
    return [process for process, _, _ in described(chosen)]


def described(chosen: Settings) -> Iterator[tuple[psutil.Process, str, str]]:
    """Find the processes that carry this stack's mark, each with its name and command line; any may end meanwhile."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(chosen.state):
                yield process, process.name(), " ".join(process.cmdline())
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
