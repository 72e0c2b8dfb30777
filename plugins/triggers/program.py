"""Waiting for what becomes of a pipeline's long-running program, without a worker's slot."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pymysql
from airflow.triggers.base import BaseTrigger, TriggerEvent

from plugins.hooks.warehouse import WarehouseHook
from spark_apps.keep_program import role
from spark_apps.running.lease import is_held
from spark_apps.running.wish import read_wish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from foundation.connections import Login
    from spark_apps.running.wish import Program

LOOK_SECONDS = 2.0
# An event before the scheduler has seen that the task is deferred makes it mark the task as failed.
FIRST_LOOK_SECONDS = 10.0
GONE_SECONDS = 15.0  # a keeper that has just been started does not hold its lease yet


class ProgramTrigger(BaseTrigger):
    """Fires when a program has stopped as wished, is watched by another run, or is wanted and has no keeper.

    Args:
        pipeline: the program's.
        program: which one.
        run_id: the run that watches it; empty for a task that waits for a stop.
        until: the Unix time when a wait for a stop ends in vain; None to wait for ever.
    """

    def __init__(self, pipeline: str, program: Program, run_id: str = "", until: float | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.program: Program = program
        self.run_id = run_id
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments."""
        arguments = {"pipeline": self.pipeline, "program": self.program, "run_id": self.run_id, "until": self.until}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look every few seconds; the look itself waits in a thread."""
        loader = await asyncio.to_thread(WarehouseHook("loader").login)
        await asyncio.sleep(FIRST_LOOK_SECONDS)
        seen = time.monotonic()
        while True:
            with suppress(pymysql.Error):  # a warehouse that is away says nothing
                if end := await asyncio.to_thread(end_of, loader, self.pipeline, self.program, self.run_id):
                    yield _event(end)
                    return
                if await asyncio.to_thread(is_held, loader, self.pipeline, role(self.program)):
                    seen = time.monotonic()
                elif self.run_id and time.monotonic() - seen > GONE_SECONDS:
                    yield _event({"state": "gone"})
                    return
            if self.until is not None and time.time() > self.until:
                yield _event({"state": "late"})
                return
            await asyncio.sleep(LOOK_SECONDS)


def end_of(loader: Login, pipeline: str, program: Program, run_id: str = "") -> dict[str, str] | None:
    """Return what has become of the wish of a run of Airflow, or of a stop if `run_id` is empty; None if it goes on."""
    wish = read_wish(loader, pipeline, program)
    if wish is not None and wish.running:
        return None if wish.run_id == run_id else {"state": "replaced", "by": wish.run_id}
    if works(loader, pipeline, program):
        return None
    return {"state": "stopped", "reason": wish.reason if wish else ""}


def works(loader: Login, pipeline: str, program: Program) -> bool:
    """Return whether a program or its keeper runs."""
    return is_held(loader, pipeline, role(program)) or (program == "enrich_stream" and is_held(loader, pipeline))


def _event(said: dict[str, str]) -> TriggerEvent:
    return TriggerEvent(said)  # type: ignore[no-untyped-call]
