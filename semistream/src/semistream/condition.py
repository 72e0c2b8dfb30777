"""Join conditions other than equality: each master row matches an interval of values (MESHJOIN 2007, section 3.3)."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from semistream.keys import as_int64, is_integral

__all__ = ["Between", "Compare", "Condition", "ordered"]

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Condition(Protocol):
    """Computes for each master row the interval of values of the stream's column that it matches."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of R that the condition reads."""

    def bounds(self, rows: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the greatest stream value that each row matches, mapped to int64 by `ordered`."""


@dataclass(frozen=True)
class Between:
    """A range: low <= s <= high, where low and high are columns of R."""

    low: str
    high: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of R that the condition reads."""
        return (self.low, self.high)

    def bounds(self, rows: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the greatest stream value that each row matches; a row with a null matches none."""
        low, low_valid = ordered(rows.column(self.low))
        high, high_valid = ordered(rows.column(self.high))
        return _closed(low, high, low_valid & high_valid)


@dataclass(frozen=True)
class Compare:
    """An inequality: s < r, s <= r, s > r or s >= r, where r is a column of R."""

    operator: Literal["<", "<=", ">", ">="]
    column: str

    def __post_init__(self) -> None:
        if self.operator not in {"<", "<=", ">", ">="}:
            raise ValueError(f"operator must be <, <=, > or >=, got {self.operator!r}: use MeshJoin for =")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of R that the condition reads."""
        return (self.column,)

    def bounds(self, rows: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the greatest stream value that each row matches; a row with a null matches none."""
        r, valid = ordered(rows.column(self.column))
        if self.operator in {"<", "<="}:
            strict = self.operator == "<"
            return _closed(
                np.full(len(r), _LEAST), np.where(strict & valid, r, r + 1) - 1, valid & ~(strict & (r == _LEAST))
            )
        strict = self.operator == ">"
        return _closed(np.where(strict & valid, r, r - 1) + 1, np.full(len(r), _MOST), valid & ~(strict & (r == _MOST)))


def ordered(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Map an integer, time or float column to int64 values of the same order; return also which are not null or NaN."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if is_integral(column.type) and not pat.is_uint64(column.type):
        return as_int64(column), valid
    if not pat.is_floating(column.type):
        raise ValueError(
            f"a column of a condition must be a signed integer, a float, a date or a time, got {column.type}: "
            "cast the column first"
        )
    values = column.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0  # -0.0 becomes 0.0
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ _MOST, bits), valid & ~np.isnan(values)


def _closed(low: np.ndarray, high: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace each interval that is not valid with an empty one: 1 to 0."""
    return np.where(valid, low, 1), np.where(valid, high, 0)
