"""What the running system was started with, so that `make status` and the others need not be told it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundation.errors import UnfitError
from foundation.settings import PREFIX, STARTED_WITH
from services.ports import PORTS

if TYPE_CHECKING:
    from foundation.settings import Settings

NAMES = (*PORTS, "mariadbd", "database")


def remember(chosen: Settings) -> None:
    """Keep what every command on the running system must know."""
    (chosen.state / STARTED_WITH).write_text("".join(f"{line}\n" for line in _lines(chosen)))


def forget(chosen: Settings) -> None:
    """The system has ended: the next start is free to choose."""
    (chosen.state / STARTED_WITH).unlink(missing_ok=True)


def check_same(chosen: Settings) -> None:
    """Raise UnfitError when the running system is asked to be another one."""
    file = chosen.state / STARTED_WITH
    runs_with = file.read_text().splitlines() if file.exists() else []
    asked = [line for line in _lines(chosen) if runs_with and line not in runs_with]
    if asked:
        raise UnfitError(
            f"the system runs, and not with {', '.join(asked)}", "Type: make down, then this command again"
        )


def _lines(chosen: Settings) -> list[str]:
    return [f"{PREFIX}{name.upper()}={getattr(chosen, name)}" for name in NAMES]
