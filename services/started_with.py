"""Write and check the file that has the settings of the running system; other commands read their settings from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundation.errors import UnfitError
from foundation.settings import PREFIX, STARTED_WITH
from services.ports import PORTS

if TYPE_CHECKING:
    from foundation.settings import Settings

NAMES = (*PORTS, "mariadbd", "database")


def write_started_with(config: Settings) -> None:
    """Write the settings that every command needs to reach the running system."""
    (config.state / STARTED_WITH).write_text("".join(f"{line}\n" for line in _lines(config)))


def remove_started_with(config: Settings) -> None:
    """Remove the file when the system has stopped, because the next start can have other settings."""
    (config.state / STARTED_WITH).unlink(missing_ok=True)


def check_same(config: Settings) -> None:
    """Raise UnfitError when these settings differ from those of the running system."""
    file = config.state / STARTED_WITH
    runs_with = file.read_text().splitlines() if file.exists() else []
    others = [line for line in _lines(config) if runs_with and line not in runs_with]
    if others:
        raise UnfitError(
            f"the system already runs, but not with {', '.join(others)}", "Type: make down, then this command again"
        )


def _lines(config: Settings) -> list[str]:
    return [f"{PREFIX}{name.upper()}={getattr(config, name)}" for name in NAMES]
