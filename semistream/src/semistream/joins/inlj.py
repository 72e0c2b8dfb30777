"""INLJ, the index nested loop join (MESHJOIN 2007, section 2; HYBRIDJOIN 2011, section 3)."""

from typing import ClassVar

from semistream.joins.hybridjoin import HybridJoin
from semistream.memory_split import Needs

__all__ = ["IndexNestedLoopJoin"]


class IndexNestedLoopJoin(HybridJoin):
    """Reads one stream tuple, looks up its page, reads the page, joins, and continues with the next tuple.

    This is HYBRIDJOIN with room for a single tuple in H_S; HYBRIDJOIN 2011, theorem 2, compares the two. MESHJOIN 2007
    gives INLJ a buffer pool. This join has none, as in HYBRIDJOIN 2011 and CHYBRIDJOIN 2017: the rest of the memory is
    unused.
    """

    paper_name: ClassVar[str] = "INLJ"
    needs: ClassVar[Needs] = Needs(least_waiting=1, most_waiting=1)
    partitioned: ClassVar[bool] = False
