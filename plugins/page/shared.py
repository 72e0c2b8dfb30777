"""Threads of the page, and answers that are shared: however many look, a question is asked once at a time."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
P = ParamSpec("P")
# A warehouse that hangs holds up these threads, not those in which Airflow answers its own requests.
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="freshet")


async def in_thread(ask: Callable[P, T], *words: P.args, **options: P.kwargs) -> T:
    """Call a function that waits, in a thread of the page."""
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: ask(*words, **options))


class Shared(Generic[P, T]):
    """The answers of a function. Those that are younger than `seconds` are given again.

    Args:
        ask: the function; it runs in a thread.
        seconds: how old an answer may be.
    """

    def __init__(self, ask: Callable[P, T], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._answers: dict[object, tuple[float, asyncio.Task[T]]] = {}

    async def get(self, *words: P.args, **options: P.kwargs) -> T:
        """Return the answer to these arguments."""
        now, key = time.monotonic(), (words, tuple(sorted(options.items())))
        asked_at, answer = self._answers.get(key, (0.0, None))
        if answer is None or (answer.done() and now - asked_at > self._seconds):
            self._drop_old(now)
            answer = asyncio.create_task(in_thread(self._ask, *words, **options))
            self._answers[key] = now, answer
        return await asyncio.shield(answer)  # who stops waiting does not end it for the others

    def _drop_old(self, now: float) -> None:
        for key, (asked_at, answer) in [*self._answers.items()]:
            if answer.done() and now - asked_at > self._seconds:
                del self._answers[key]
