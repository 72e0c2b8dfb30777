"""MESHJOIN with join conditions other than equality (MESHJOIN 2007, section 3.3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from semistream.condition import Condition, ordered
from semistream.joins.meshjoin import MeshJoin
from semistream.ordered_window import OrderedWindow
from semistream.relation.base import Page, Relation
from semistream.stream_buffer import Encoder
from semistream.stream_table import Cursor

__all__ = ["ConditionMeshJoin"]


class ConditionMeshJoin(MeshJoin):
    """MESHJOIN whose master rows match intervals of the stream's column; the window is ordered by that column.

    It differs from MESHJOIN only in how it finds matches (line 10). The queue still expires tuples that have met all
    pages of R.

    Args:
        relation: master data R.
        *args: as in `SemiStreamJoin`; `on` names one column of the stream.
        condition: which values of that column a master row matches.
        columns: columns of R to add; by default all.
        **kwargs: as in `SemiStreamJoin`.
    """

    def __init__(
        self,
        relation: Relation,
        *args: Any,  # noqa: ANN401
        condition: Condition,
        columns: Sequence[str] | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        self._condition = condition
        columns = relation.schema.names if columns is None else columns
        super().__init__(relation, *args, columns=columns, **kwargs)
        self._window = OrderedWindow(self.waiting.slots)
        self.waiting.table = self._window  # type: ignore[assignment]  # only `probe` differs, and only this class calls it
        self._check_types()

    @classmethod
    def _is_exact(cls, relation: Relation) -> bool:  # noqa: ARG003 - as in the base
        return True

    def _encoder(self) -> Encoder:
        return _Order()

    def _keys_to_join(self) -> tuple[str, ...]:
        return (" ".join(self._condition.columns),)

    def _probe(self, page: Page, cursor: Cursor) -> tuple[np.ndarray, np.ndarray, Cursor]:
        """Find the waiting tuples within each row's interval, from the cursor on."""
        low, high = self._condition.bounds(page.rows)
        found, cursor = self._window.probe(low, high, cursor, self._found_slots, self._found_rows)
        return self._found_slots[:found], self._found_rows[:found], cursor

    def _check_types(self) -> None:
        """Refuse columns that cannot be compared."""
        ordered(pa.array([], self.stream.field(self.on[0]).type))
        for name in self._condition.columns:
            left, right = self.stream.field(self.on[0]).type, self.relation.schema.field(name).type
            if left != right and not (pa.types.is_integer(left) and pa.types.is_integer(right)):
                raise ValueError(
                    f"columns of a condition must be of one type, got {left} of the stream and {right} of {name}: "
                    "cast one of them first"
                )


class _Order:
    """Encodes values as integers of the same order."""

    def encode(self, columns: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
        """Return an integer for each value, ordered as the values are, and which values are neither null nor NaN."""
        return ordered(columns[0])
