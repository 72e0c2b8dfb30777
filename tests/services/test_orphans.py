"""A sweep finds processes that outlive their supervisor by their mark, and ends no other process."""

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

CHURN = "while :; do sleep 0.01; done"  # its children end while the sweep looks at them


@contextmanager
def orphan(state: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command with the mark of a stack, as `up` does."""
    with subprocess.Popen(command, env={**os.environ, stack.MARK: str(state)}) as process:
        try:
            yield process
        finally:
            process.kill()


def of(state: Path) -> Settings:
    """Return the settings of a stack with this state folder."""
    return Settings(state=state)  # type: ignore[call-arg]


def test_an_orphan_is_ended_and_named(tmp_path: Path) -> None:
    """A sweep ends and reports an orphan; a spared process and one of another stack keep running."""
    lines: list[str] = []
    ours, other = tmp_path / "ours", tmp_path / "other"
    with orphan(ours, "sleep", "600"), orphan(ours, "sleep", "601") as spared, orphan(other, "sleep", "600") as foreign:
        stack.sweep(of(ours), lines.append, spare=("sleep 601",))
        assert [process.pid for process in stack.marked(of(ours))] == [spared.pid]
        assert [process.pid for process in stack.marked(of(other))] == [foreign.pid]
    assert lines == ["  ending 1 orphaned processes: sleep"]


def test_an_orphan_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep sends SIGKILL to an orphan that is still alive after the timeout."""
    monkeypatch.setattr(stack, "STOP_SECONDS", 1.0)
    with orphan(tmp_path, "bash", "-c", "trap '' TERM; while :; do /bin/true; done"):
        stack.sweep(of(tmp_path), print)
        assert not list(stack.marked(of(tmp_path)))


def test_orphans_may_end_during_a_sweep(tmp_path: Path) -> None:
    """A sweep succeeds while processes of a dying stack start and end."""
    with ExitStack() as dying:
        pids = {dying.enter_context(orphan(tmp_path, "bash", "-c", CHURN)).pid for _ in range(4)}
        for _ in range(60):
            stack.sweep(of(tmp_path), print, spare=("while",))
        stack.sweep(of(tmp_path), print)
        assert not pids & {process.pid for process in stack.marked(of(tmp_path))}
