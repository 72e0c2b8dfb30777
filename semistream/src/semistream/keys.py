"""Join keys as 64-bit integers.

An integer, date or time column is its own 64-bit key. Strings, binaries and keys of several columns become a 64-bit
fingerprint. Two rows with equal fingerprints are only candidates for a match: `KeyCodec.equal` compares their key
columns. So a collision costs time but never causes a wrong row.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from semistream.arrow import is_variable_width, variable_width
from semistream.hashing import mix
from semistream.kernels import kernel

__all__ = ["Fingerprint", "KeyCodec", "as_int64", "fingerprint", "is_integral"]

Fingerprint = Callable[[Sequence[pa.Array]], np.ndarray]  # from key columns to a 64-bit fingerprint per row

_ODD = np.uint64(0x9E3779B97F4A7C15)


def fingerprint(columns: Sequence[pa.Array]) -> np.ndarray:
    """Hash the key columns of each row into 64 bits."""
    prints = np.full(len(columns[0]), len(columns), dtype=np.int64)
    for column in columns:
        if is_integral(column.type):
            _add_integers(prints, as_int64(column))
        else:
            offsets, data = variable_width(column)
            _add_bytes(prints, offsets, data)
    return prints


class KeyCodec:
    """Turns key columns into 64-bit keys, in the same way for the stream and for the relation.

    Args:
        types: types of the key columns.
        partner: the codec of the other side of the join.
        fingerprint: hashes keys that are not one integer; with a partner, the partner's function is used instead.

    Attributes:
        kinds: for each column "integer", "string", "binary", or its date or time type; only equal kinds can be joined.
        exact: whether equal 64-bit keys mean equal key columns, so that candidates need no confirmation.
        wraps: for each column, whether it is uint64, whose integers from 2^63 on become negative.
        fingerprint: hashes keys that are not one integer.
    """

    def __init__(
        self,
        types: Sequence[pa.DataType],
        partner: "KeyCodec | None" = None,
        fingerprint: Fingerprint = fingerprint,
    ) -> None:
        for kind in types:
            if not (is_integral(kind) or is_variable_width(kind)):
                raise ValueError(
                    f"key column type must be an integer, date, time, timestamp, string or binary, got {kind}: "
                    "cast the column first"
                )
        self.kinds = [_family(kind) for kind in types]
        self.exact = len(types) == 1 and is_integral(types[0])
        self.wraps = [pat.is_uint64(kind) for kind in types]
        if partner is not None and self.kinds != partner.kinds:
            raise ValueError(
                f"stream key {self.kinds} and relation key {partner.kinds} must be of the same kinds: "
                "cast one of them first"
            )
        self.fingerprint: Fingerprint = fingerprint if partner is None else partner.fingerprint
        others = self.wraps if partner is None else partner.wraps
        self._one_sided = [a != b for a, b in zip(self.wraps, others, strict=True)]

    def encode(self, columns: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
        """Return the 64-bit key of each row, and whether that key can match a key of the partner.

        It cannot if a column is null, or if only one side is uint64 and the integer is out of the other side's range:
        negative, or 2^63 or more.
        """
        valid = np.ones(len(columns[0]), dtype=np.bool_)
        for column, one_sided in zip(columns, self._one_sided, strict=True):
            if column.null_count:
                valid &= column.is_valid().to_numpy(zero_copy_only=False)
            if one_sided:
                valid &= as_int64(column) >= 0
        keys = as_int64(columns[0]) if self.exact else self.fingerprint(columns)
        return keys, valid

    @staticmethod
    def equal(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> np.ndarray:
        """Return for each row whether its key columns are equal; null equals nothing."""
        same = np.ones(len(left[0]), dtype=np.bool_)
        for a, b in zip(left, right, strict=True):
            same &= pc.equal(_comparable(a), _comparable(b)).fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003
        return same


def as_int64(column: pa.Array) -> np.ndarray:
    """View or cast an integer or time column as int64; nulls become 0, integers from 2^63 on negative."""
    column = _comparable(column)
    keys: np.ndarray = (column.fill_null(0) if column.null_count else column).to_numpy()
    return keys


def is_integral(kind: pa.DataType) -> bool:
    """Return whether values are integers, or dates and times, which Arrow stores as integers."""
    return bool(pat.is_integer(kind) or pat.is_date(kind) or pat.is_timestamp(kind) or pat.is_time(kind))


def _comparable(column: pa.Array) -> pa.Array:
    """Cast an integer or time column to int64; leave others as they are."""
    if not is_integral(column.type) or pat.is_int64(column.type):
        return column
    if pat.is_date32(column.type) or pat.is_time32(column.type):
        column = column.cast(pa.int32())
    return column.cast(pa.int64(), safe=False)


def _family(kind: pa.DataType) -> str:
    if pat.is_integer(kind):
        return "integer"
    if is_integral(kind):
        return str(kind)  # the type has the unit: days and microseconds cannot be compared
    return "string" if pat.is_string(kind) or pat.is_large_string(kind) else "binary"


@kernel
def _add_integers(prints: np.ndarray, values: np.ndarray) -> None:
    for i in range(len(prints)):
        prints[i] = np.int64(mix(mix(prints[i]) * _ODD + np.uint64(values[i])))


@kernel
def _add_bytes(prints: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> None:
    for i in range(len(prints)):
        h = mix(prints[i]) * _ODD + np.uint64(offsets[i + 1] - offsets[i])
        word = np.uint64(0)
        shift = np.uint64(0)
        for j in range(offsets[i], offsets[i + 1]):
            word |= np.uint64(data[j]) << shift
            shift += np.uint64(8)
            if shift == np.uint64(64):
                h = mix(h ^ word) * _ODD
                word = np.uint64(0)
                shift = np.uint64(0)
        prints[i] = np.int64(mix(h ^ word))
