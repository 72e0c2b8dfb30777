"""`python -m services COMMAND`: the commands that the Makefile offers."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pymysql
from kafka.errors import KafkaError

from foundation.errors import UnfitError
from foundation.settings import PREFIX, ROOT, SECRET_NAMES, Settings, settings, state_folder
from services import health, mariadb, stack
from services.airflow import ADMIN, VIEWER
from services.airflow_api import AirflowApi
from services.demo import demo as run_demo
from services.one_line import one_line
from services.topic import follow

if TYPE_CHECKING:
    from collections.abc import Callable


PROGRAMS = ("enrich_stream", "generator")  # whose logs are followed if no service is named


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m services", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    command = COMMANDS[parser.parse_args().command]
    with one_line():
        try:
            command()
        except (pymysql.MySQLError, httpx.HTTPError, KafkaError) as error:
            raise UnfitError(f"a service stopped answering ({error})", "To see which one: make status") from error


def say(line: str) -> None:
    """Print a line and flush it; end the program if standard output is a pipe that its reader has closed."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's flush at exit does not fail
        sys.exit()


def up() -> None:
    """Start everything and wait until it is healthy."""
    stack.up(say)


def demo() -> None:
    """Start everything, run the demo and print where to look."""
    run_demo(say)


def down() -> None:
    """Stop everything."""
    stack.down(say)
    say("  everything has stopped")


def clean() -> None:
    """Stop every stack whose data is in `.freshet/`."""
    stack.down_below(ROOT / ".freshet", say)


def status() -> None:
    """Print one line for each service and each pipeline; the exit code is 1 when one is not well."""
    lines = stack.status()
    for line in lines:
        say(str(line))
    ill = {line.name for line in lines if line.obstacle}
    if "mariadb" in ill:
        sys.exit(1)  # what is known of pipelines is there
    paused = [] if "airflow" in ill else paused_dags()
    # A program of its own: this command stands on the foundation only.
    command = [sys.executable, "-m", "spark_apps.pipeline_status", "--paused", *paused]
    answer = subprocess.run(command, cwd=ROOT, check=False)
    sys.exit(answer.returncode or bool(ill))


def paused_dags() -> list[str]:
    """Return the Dags that are paused in Airflow."""
    with AirflowApi(settings()) as api:
        return api.paused()


def logs() -> None:
    """Follow the logs of the pipelines' programs; with SERVICE=airflow, those of that service."""
    folder, service = state_folder() / "logs", os.environ.get("SERVICE", "")
    every = sorted(folder.glob("*.log"))
    wanted = (service,) if service else PROGRAMS
    files = [file for file in every if file.name.startswith(wanted)]
    if not files:
        services = sorted({file.stem.split("-")[0] for file in every} - {*PROGRAMS})
        raise UnfitError(
            f"no log of {service or 'a pipeline'} in {folder} yet",
            f"Start a pipeline, or type: make logs SERVICE={services[0]} (or {', '.join(services[1:])})"
            if services
            else "Type: make up",
        )
    os.execvp("tail", ["tail", "-n", "20", "-F", *map(str, files)])


def sql() -> None:
    """Open MariaDB's client with the read-only account of analysts."""
    config = healthy("mariadb")
    client = mariadb.base_folder(config) / "bin" / "mariadb"
    # The password goes through the environment, because every user can read a command line. The server on this machine
    # has no certificate; without --skip-ssl-verify-server-cert the client warns about that.
    environment = {**os.environ, "MYSQL_PWD": config.secret("reader_password")}
    address = [f"--host={config.mariadb_host}", f"--port={config.mariadb_port}", "--user=reader"]
    options = ["--no-defaults", "--skip-ssl-verify-server-cert"]
    os.execve(client, [str(client), *options, *address, config.database], environment)


def topic() -> None:
    """Print the messages of the enriched topic as they arrive, and why none arrives."""
    for line in follow(healthy("kafka").kafka_bootstrap, "sales.enriched", why_nothing):
        say(line)


def why_nothing() -> str:
    """Return the status of the pipelines, in one line each."""
    status = [sys.executable, "-m", "spark_apps.pipeline_status"]
    said = subprocess.run(status, cwd=ROOT, capture_output=True, text=True, check=False)
    return f"  nothing arrives. {(said.stdout + said.stderr).strip()}"


def healthy(service: str) -> Settings:
    """Return the settings if a service is healthy; else raise UnfitError with the reason."""
    config = settings()
    if obstacle := health.CHECKS[service](config):
        raise UnfitError(f"{service} is not healthy: {obstacle}", "Type: make up")
    return config


def password() -> None:
    """Print Airflow's logins."""
    config = settings()
    say(f"user {ADMIN}, password {config.secret('airflow_password')}")
    say(f"user {VIEWER}, password {config.secret('airflow_viewer_password')} (may look, and change nothing)")


def list_settings() -> None:
    """Print every setting with its value; for a secret, print only the name."""
    config = settings()
    for name, field in Settings.model_fields.items():
        value = "(in secrets.env)" if name in SECRET_NAMES else getattr(config, name)
        say(f"{PREFIX + name.upper():<34} {value!s:<24} {field.description or 'a secret, created at the first start'}")


COMMANDS: dict[str, Callable[[], None]] = {
    "up": up,
    "down": down,
    "clean": clean,
    "status": status,
    "logs": logs,
    "demo": demo,
    "sql": sql,
    "topic": topic,
    "password": password,
    "settings": list_settings,
}

if __name__ == "__main__":
    main()
