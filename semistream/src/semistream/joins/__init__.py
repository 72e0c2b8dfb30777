"""The joins, one algorithm per file; each reads like its paper's pseudo-code."""

from semistream.joins.chybridjoin import CHybridJoin
from semistream.joins.cinlj import CachedIndexNestedLoopJoin
from semistream.joins.cmeshjoin import CMeshJoin
from semistream.joins.condition_meshjoin import ConditionMeshJoin
from semistream.joins.hybridjoin import HybridJoin
from semistream.joins.inlj import IndexNestedLoopJoin
from semistream.joins.meshjoin import MeshJoin
from semistream.joins.optimised_x_hybridjoin import OptimisedXHybridJoin
from semistream.joins.ordered_meshjoin import OrderedMeshJoin
from semistream.joins.r_meshjoin import RMeshJoin
from semistream.joins.semi_stream_join import SemiStreamJoin
from semistream.joins.timed_chybridjoin import TimedCHybridJoin
from semistream.joins.x_hybridjoin import XHybridJoin

__all__ = [
    "BY_NAME",
    "CHybridJoin",
    "CMeshJoin",
    "CachedIndexNestedLoopJoin",
    "ConditionMeshJoin",
    "HybridJoin",
    "IndexNestedLoopJoin",
    "MeshJoin",
    "OptimisedXHybridJoin",
    "OrderedMeshJoin",
    "RMeshJoin",
    "SemiStreamJoin",
    "TimedCHybridJoin",
    "XHybridJoin",
]

# The equality joins. Two joins are not here: `ConditionMeshJoin` needs a condition, and `TimedCHybridJoin` is
# CHYBRIDJOIN with a deadline.
BY_NAME: dict[str, type[SemiStreamJoin]] = {
    "meshjoin": MeshJoin,
    "ordered_meshjoin": OrderedMeshJoin,
    "r_meshjoin": RMeshJoin,
    "inlj": IndexNestedLoopJoin,
    "hybridjoin": HybridJoin,
    "x_hybridjoin": XHybridJoin,
    "optimised_x_hybridjoin": OptimisedXHybridJoin,
    "cmeshjoin": CMeshJoin,
    "cinlj": CachedIndexNestedLoopJoin,
    "chybridjoin": CHybridJoin,
}
