"""`python -m services up|down|status|logs`: the services of this machine."""

from __future__ import annotations

import argparse
import subprocess
import sys

from services import stack
from services.demo import demo as tell_story
from services.preflight import Unfit
from services.settings import SettingsError, state_folder
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
    subprocess.run(["tail", "-n", "20", "-F", *files], check=False)


COMMANDS = {"up": up, "down": down, "status": status, "logs": logs, "demo": demo}

if __name__ == "__main__":
    main()
