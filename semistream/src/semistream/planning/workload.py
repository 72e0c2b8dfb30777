"""What is to be joined, as far as a plan needs to know it: the size of R, its order, the skew, and the columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from semistream.planning.skew import Skew
from semistream.relation.base import Page, Relation

__all__ = ["Order", "SizedRelation", "Workload", "added_columns"]

Order = Literal["frequency", "none"]
_KEY_BYTES = 8


@dataclass(frozen=True)
class Workload:
    """A stream and its master data.

    Attributes:
        rows: the rows of R.
        row_bytes: the bytes of a row of R on disk.
        exponent: the exponent of Zipf's law in the stream.
        order: of R: by frequency, or none.
        master: the columns of R.
        key: the key columns of R.
        stream: the columns of the stream.
        on: the stream's key columns.
        output: "rows", or "pairs" to keep keys only (as in `SemiStreamJoin`).
        reads_rows: whether single rows of R can be read (as in `Relation`).
    """

    rows: int
    row_bytes: int
    exponent: float
    order: Order
    master: pa.Schema
    key: tuple[str, ...]
    stream: pa.Schema
    on: tuple[str, ...]
    output: Literal["rows", "pairs"] = "rows"
    reads_rows: bool = False

    def __post_init__(self) -> None:
        if self.rows < 1 or not 0 <= self.exponent < math.inf:
            raise ValueError(
                f"rows must be at least 1 and exponent a number of at least 0, got {self.rows} and {self.exponent}: "
                f"correct them"
            )

    @property
    def skew(self) -> Skew:
        """How the stream asks for the rows."""
        return Skew(self.rows, self.exponent)

    @property
    def values(self) -> int:
        """How many values of a master row are output."""
        return len(added_columns(self)) if self.output == "rows" else 0

    @classmethod
    def of_the_papers(
        cls, rows: int = 2_000_000, exponent: float = 1.0, order: Order = "frequency", row_bytes: int = 120
    ) -> "Workload":
        """Return the papers' data: rows of 120 bytes in R, tuples of 20 bytes in the stream, whole numbers all."""
        if row_bytes < _KEY_BYTES:
            raise ValueError(f"row_bytes must be at least {_KEY_BYTES}, a key's, got {row_bytes}: correct it")
        columns = ["id", *(f"column_{number}" for number in range(row_bytes // _KEY_BYTES - 1))]
        master = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in columns])
        kinds = {"key": pa.int64(), "number": pa.int64(), "quantity": pa.int32()}
        stream = pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])
        return cls(rows, row_bytes, exponent, order, master, ("id",), stream, ("key",))


class SizedRelation(Relation):
    """R without its rows: joins ask it for sizes only.

    Args:
        workload: what is to be joined.
        page_rows: the rows of a page.
    """

    def __init__(self, workload: Workload, page_rows: int) -> None:
        self._describe(workload.master, workload.key, page_rows)
        self.row_count = workload.rows
        self.page_bytes = min(page_rows, workload.rows) * workload.row_bytes
        self.unique = True

    def _read(self, page: int) -> tuple[Page, int]:
        raise NotImplementedError(f"a plan has no page {page}")

    def _locate(self, keys: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"a plan has none of {len(keys)} keys")

    def _candidates(self, key: int) -> list[int]:
        raise NotImplementedError(f"a plan has no key {key}")


def added_columns(workload: Workload) -> Sequence[str]:
    """Return the columns of R that a join adds."""
    return [name for name in workload.master.names if name not in workload.key]
