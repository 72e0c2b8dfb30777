"""`python -m services COMMAND`: the services of this machine, as the Makefile calls them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from contextlib import suppress

from services import health, mariadb, stack
from services.airflow import ADMIN
from services.demo import demo as tell_story
from services.preflight import Unfit
from services.settings import PREFIX, SECRET_NAMES, Settings, SettingsError, settings, state_folder
from services.topic import follow
from services.waiting import NotInTimeError


def main() -> None:
    """Do what the command line says; a failure is one line."""
    parser = argparse.ArgumentParser(prog="python -m services", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    try:
        COMMANDS[parser.parse_args().command]()
    except (Unfit, SettingsError, NotInTimeError) as failure:
        sys.exit(f"freshet: {failure}")


def say(line: str) -> None:
    """Print at once, also into a pipe."""
    print(line, flush=True)


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
        raise Unfit(f"there is no log in {state_folder() / 'logs'} yet. Type: make up")
    with suppress(KeyboardInterrupt):
        subprocess.run(["tail", "-n", "20", "-F", *files], check=False)


def sql() -> None:
    """Become MariaDB's prompt with an analyst's rights."""
    chosen = settings()
    client = mariadb.base_folder(chosen) / "bin" / "mariadb"
    # The client reads its password from the environment: on the command line everybody could see it.
    environment = {**os.environ, "MYSQL_PWD": chosen.secret("reader_password")}
    address = [f"--host={chosen.mariadb_host}", f"--port={chosen.mariadb_port}", "--user=reader"]
    os.execve(client, [str(client), "--no-defaults", *address, chosen.database], environment)


def topic() -> None:
    """Print the enriched topic's events as they come."""
    chosen = settings()
    if obstacle := health.kafka(chosen):
        raise Unfit(f"{obstacle}. Type: make up")
    with suppress(KeyboardInterrupt, BrokenPipeError):
        for line in follow(chosen.kafka_bootstrap, "sales.enriched"):
            say(line)


def password() -> None:
    """Print Airflow's login."""
    say(f"user {ADMIN}, password {settings().secret('airflow_password')}")


def list_settings() -> None:
    """Print every setting with its value; secrets are named only."""
    chosen = settings()
    for name, field in Settings.model_fields.items():
        value = "(in secrets.env)" if name in SECRET_NAMES else getattr(chosen, name)
        say(f"{PREFIX + name.upper():<34} {value!s:<24} {field.description or 'a secret, made at first start'}")


COMMANDS = {
    "up": up,
    "down": down,
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
