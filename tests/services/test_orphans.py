"""What outlived its supervisor is found by its mark and ended; everything else is left alone."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from foundation.settings import Settings
from services import stack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

CHURN = "while :; do sleep 0.01; done"  # a process that ends while it is looked at, again and again


@contextmanager
def orphan(state: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command as something that `up` has started."""
    with subprocess.Popen(command, env={**os.environ, stack.MARK: str(state)}) as process:
        try:
            yield process
        finally:
            process.kill()


def of(state: Path) -> Settings:
    """The settings of a stack that keeps its state there."""
    return Settings(state=state)  # type: ignore[call-arg]


def test_an_orphan_is_ended_and_named(tmp_path: Path) -> None:
    """What is to be spared goes on, and so does what belongs to another stack."""
    told: list[str] = []
    ours, other = tmp_path / "ours", tmp_path / "other"
    with orphan(ours, "sleep", "600"), orphan(ours, "sleep", "601") as spared, orphan(other, "sleep", "600") as foreign:
        stack.sweep(of(ours), told.append, spare=("sleep 601",))
        assert [process.pid for process in stack.marked(of(ours))] == [spared.pid]
        assert [process.pid for process in stack.marked(of(other))] == [foreign.pid]
    assert told == ["  ending 1 processes that were left: sleep"]


def test_what_does_not_listen_is_ended_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ignores the polite request."""
    monkeypatch.setattr(stack, "STOP_SECONDS", 1.0)
    with orphan(tmp_path, "bash", "-c", "trap '' TERM; while :; do /bin/true; done"):
        stack.sweep(of(tmp_path), print)
        assert not list(stack.marked(of(tmp_path)))


def test_orphans_that_end_while_they_are_looked_at_do_no_harm(tmp_path: Path) -> None:
    """A dying stack is in motion: processes come and go between two looks."""
    with ExitStack() as dying:
        pids = {dying.enter_context(orphan(tmp_path, "bash", "-c", CHURN)).pid for _ in range(4)}
        for _ in range(60):
            stack.sweep(of(tmp_path), print, spare=("while",))
        stack.sweep(of(tmp_path), print)
        assert not pids & {process.pid for process in stack.marked(of(tmp_path))}
