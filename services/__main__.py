"""`python -m services COMMAND`: the services of this machine, as the Makefile calls them."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

import httpx
import pymysql

from foundation.errors import NotInTimeError, SettingsError, UnfitError
from foundation.settings import PREFIX, ROOT, SECRET_NAMES, Settings, settings, state_folder
from services import health, mariadb, stack
from services.airflow import ADMIN
from services.demo import demo as tell_story
from services.topic import follow

if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130  # the exit code of what Ctrl-C has ended


def main() -> None:
    """Do what the command line says; a failure is one line."""
    parser = argparse.ArgumentParser(prog="python -m services", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    try:
        COMMANDS[parser.parse_args().command]()
    except (UnfitError, SettingsError, NotInTimeError) as failure:
        sys.exit(f"freshet: {failure}")
    except (pymysql.MySQLError, httpx.HTTPError) as failure:
        sys.exit(f"freshet: a service went away ({failure}). See which: make status")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def say(line: str) -> None:
    """Print at once, also into a pipe; end when its reader has seen enough."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python's own last flush is not to fail too
        sys.exit()


def up() -> None:
    """Start everything and wait until it is healthy."""
    stack.up(say)


def demo() -> None:
    """Run the whole story and say where to look."""
    tell_story(say)


def down() -> None:
    """End everything."""
    stack.down(say)
    say("  everything has ended")


def clean() -> None:
    """End everything whose data is in `.freshet/`."""
    stack.down_below(ROOT / ".freshet", say)


def status() -> None:
    """Print a line a service; the exit code is 1 when one is not healthy."""
    lines = stack.status()
    for line in lines:
        say(str(line))
    sys.exit(any(line.obstacle for line in lines))


def logs() -> None:
    """Follow every service's log."""
    files = sorted((state_folder() / "logs").glob("*.log"))
    if not files:
        raise UnfitError(f"there is no log in {state_folder() / 'logs'} yet", "Type: make up")
    os.execvp("tail", ["tail", "-n", "20", "-F", *map(str, files)])


def sql() -> None:
    """Become MariaDB's prompt with an analyst's rights."""
    chosen = able("mariadb")
    client = mariadb.base_folder(chosen) / "bin" / "mariadb"
    # The client reads its password from the environment: on the command line everybody could see it. It would warn that
    # it cannot verify a certificate without one, on a server of this machine.
    environment = {**os.environ, "MYSQL_PWD": chosen.secret("reader_password")}
    address = [f"--host={chosen.mariadb_host}", f"--port={chosen.mariadb_port}", "--user=reader"]
    options = ["--no-defaults", "--skip-ssl-verify-server-cert"]
    os.execve(client, [str(client), *options, *address, chosen.database], environment)


def topic() -> None:
    """Print the enriched topic's events as they come."""
    for line in follow(able("kafka").kafka_bootstrap, "sales.enriched"):
        say(line)


def able(service: str) -> Settings:
    """Return the settings when a service answers; else say why not and what to type."""
    chosen = settings()
    if obstacle := health.CHECKS[service](chosen):
        raise UnfitError(f"{service} is not healthy: {obstacle}", "Type: make up")
    return chosen


def password() -> None:
    """Print Airflow's login."""
    say(f"user {ADMIN}, password {settings().secret('airflow_password')}")


def list_settings() -> None:
    """Print every setting with its value; secrets are named only."""
    chosen = settings()
    for name, field in Settings.model_fields.items():
        value = "(in secrets.env)" if name in SECRET_NAMES else getattr(chosen, name)
        say(f"{PREFIX + name.upper():<34} {value!s:<24} {field.description or 'a secret, made at first start'}")


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
