"""Make changes in a directory survive a crash of the machine."""

import os
from pathlib import Path

__all__ = ["fsync_directory"]


def fsync_directory(directory: Path) -> None:
    """Sync a directory to the disk, so that a file created, renamed or removed in it stays so after a crash."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
