"""Spark's Python workers for a test: their master store is slow while the file that a variable names is there.

Spark runs it in place of its own daemon by `spark.python.daemon.module`. Nearly every event has to wait for a page.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from spark_apps.semistream.relation.page_file import PageFile

if TYPE_CHECKING:
    from socket import socket

    from spark_apps.semistream.relation.base import Page

SLOW_WHILE = "FRESHET_TEST_SLOW_WHILE"
PAGE_SECONDS = 1.0


class SometimesSlowPageFile(PageFile):
    """A page takes its time while the store is slow."""

    def _read(self, page: int) -> tuple[Page, int]:
        if Path(os.environ[SLOW_WHILE]).exists():
            time.sleep(PAGE_SECONDS)
        return super()._read(page)


def main() -> None:
    """Make workers as Spark's own daemon does."""
    from pyspark import daemon

    work = daemon.worker

    def work_slowly(sock: socket, authenticated: bool) -> int:  # noqa: FBT001  # as Spark calls it
        from spark_apps import joiner
        from tests.spark_apps.flood import FEW_CACHED

        vars(joiner)["PageFile"] = SometimesSlowPageFile
        vars(joiner)["JOINS"]["chybridjoin"] = FEW_CACHED
        return work(sock, authenticated)

    daemon.worker = work_slowly
    daemon.manager()


if __name__ == "__main__":
    main()
