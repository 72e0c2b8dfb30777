"""The folders of the state: the one place that spells their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class StateFolders:
    """Where the running system keeps what outlives a process.

    Attributes:
        root: the setting `state`.
    """

    root: Path

    @property
    def all_snapshots(self) -> Path:
        """The folder with one folder of snapshots for each pipeline."""
        return self.root / "snapshots"

    def snapshots(self, pipeline: str) -> Path:
        """The folder with the snapshots of a pipeline's master data."""
        return self.all_snapshots / pipeline

    def checkpoints(self, pipeline: str) -> Path:
        """The folder of Spark's checkpoints, with a folder for each incarnation of the pipeline's topic."""
        return self.root / "checkpoints" / pipeline

    def shed(self, pipeline: str) -> Path:
        """The folder with a pipeline's shed events."""
        return self.root / "shed" / pipeline
