"""A service that hangs: its process exists, but does not answer."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

import psutil

from services import stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings


@contextmanager
def frozen(running: Settings, service: str, seconds: float) -> Iterator[None]:
    """Freeze a service during the block, for `seconds` at most: a client that waits without a limit ends after that."""
    with stack.supervisor(running) as control:
        process = psutil.Process(control.getProcessInfo(service)["pid"])
    thaw = Timer(seconds, process.resume)
    process.suspend()
    thaw.start()
    try:
        yield
    finally:
        thaw.cancel()
        process.resume()
