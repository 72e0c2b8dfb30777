"""R in no order and of any size, without its rows: a bijection gives the key at a position, and the position of a key.

Positions and keys are the whole numbers below the number of rows. `_permute` mixes the numbers of as many bits as these
need. A result that is too large is mixed again, until it is one of them; so every position has one key.
"""

import numpy as np
import pyarrow as pa
from semistream.kernels import kernel
from semistream.planning.workload import SizedRelation, Workload
from semistream.relation.base import Page

__all__ = ["ShuffledRelation"]

_ODD = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)  # odd, so that to multiply by them can be undone


class ShuffledRelation(SizedRelation):
    """A relation whose pages are computed when they are read. All columns have the row's key as their value.

    Args:
        workload: the columns and size of R; its columns must be 64-bit integers.
        page_rows: the rows of a page.
    """

    def __init__(self, workload: Workload, page_rows: int) -> None:
        super().__init__(workload, page_rows)
        self._bits = max(2, (workload.rows - 1).bit_length())
        back = [pow(odd, -1, 2**self._bits) for odd in reversed(_ODD)]
        self._to_keys, self._to_positions = np.array(_ODD, np.uint64), np.array(back, np.uint64)

    def _read(self, page: int) -> tuple[Page, int]:
        first = page * self.page_rows
        positions = np.arange(first, min(first + self.page_rows, self.row_count))
        keys = self._permuted(positions, self._to_keys)
        rows = pa.RecordBatch.from_arrays([pa.array(keys)] * len(self.schema), schema=self.schema)
        return Page(first, keys, rows), rows.nbytes

    def _locate(self, keys: np.ndarray) -> np.ndarray:
        known = (keys >= 0) & (keys < self.row_count)
        positions = self._permuted(np.where(known, keys, 0), self._to_positions)
        return np.where(known, positions // self.page_rows, -1)

    def _candidates(self, key: int) -> list[int]:
        return [page for page in self._locate(np.array([key])).tolist() if page >= 0]

    def _permuted(self, numbers: np.ndarray, odd: np.ndarray) -> np.ndarray:
        mixed = np.empty(len(numbers), dtype=np.int64)
        _permute(numbers, mixed, self.row_count, self._bits, odd)
        return mixed


@kernel
def _permute(numbers: np.ndarray, mixed: np.ndarray, rows: int, bits: int, odd: np.ndarray) -> None:
    """Mix each number until the result is less than `rows`.

    To shift by half of the bits or more and xor is its own inverse. So the inverses of the factors, in the other order,
    undo the whole.
    """
    half, mask = np.uint64((bits + 1) // 2), np.uint64((1 << bits) - 1)
    for i in range(len(numbers)):
        number = np.uint64(numbers[i])
        while True:
            number ^= number >> half
            for factor in odd:
                number = (number * factor) & mask
                number ^= number >> half
            if number < np.uint64(rows):
                break
        mixed[i] = np.int64(number)
