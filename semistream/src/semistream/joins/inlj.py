"""INLJ, the index nested loop join (004 section 2, 000 section 3)."""

from typing import ClassVar

from semistream.joins.hybridjoin import HybridJoin
from semistream.memory_split import Needs


class IndexNestedLoopJoin(HybridJoin):
    """Reads one stream tuple, looks its page up, reads the page, joins, and goes on with the next tuple.

    That is HYBRIDJOIN with room for a single tuple in H_S, which is what 000's theorem 2 compares it with. The buffer
    pool that 004 gives it is left out, as in 000 and 003: the rest of the memory is unused.
    """

    needs: ClassVar[Needs] = Needs(least_waiting=1, most_waiting=1)
