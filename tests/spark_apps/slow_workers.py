"""Spark's Python workers for a test: their master store is slow while the file that a variable names is there.

Spark runs it in place of its own daemon by `spark.python.daemon.module`. Nearly every event has to wait for a page.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import socket

    from semistream.relation.base import Page
    from semistream.relation.page_file import PageFile

SLOW_WHILE = "FRESHET_TEST_SLOW_WHILE"
PAGE_SECONDS = 4.0


def main() -> None:
    """Make workers as Spark's own daemon does."""
    from pyspark import daemon

    work = daemon.worker

    def worker(sock: socket, authenticated: bool) -> int:  # noqa: FBT001  # as Spark calls it
        slow_down()  # not before the fork: Spark imports nothing there either
        return work(sock, authenticated)

    daemon.worker = worker
    daemon.manager()


def slow_down() -> None:
    """Have a page take its time while the store is slow, and every event wait for one."""
    from semistream.relation.page_file import PageFile

    from spark_apps.enriching import worker_join as joiner
    from tests.spark_apps.shedding_stream import FEW_CACHED

    read = PageFile._read  # noqa: SLF001

    def slow_read(self: PageFile, page: int) -> tuple[Page, int]:
        if Path(os.environ[SLOW_WHILE]).exists():
            time.sleep(PAGE_SECONDS)
        return read(self, page)

    PageFile._read = slow_read  # type: ignore[method-assign]  # noqa: SLF001
    joiner.JOINS["chybridjoin"] = FEW_CACHED  # type: ignore[assignment]


if __name__ == "__main__":
    main()
