"""The join family: one algorithm a file, each reading like its paper's pseudo-code."""

from spark_apps.semistream.joins.chybridjoin import CHybridJoin
from spark_apps.semistream.joins.cinlj import CachedIndexNestedLoopJoin
from spark_apps.semistream.joins.cmeshjoin import CMeshJoin
from spark_apps.semistream.joins.condition_meshjoin import ConditionMeshJoin
from spark_apps.semistream.joins.hybridjoin import HybridJoin
from spark_apps.semistream.joins.inlj import IndexNestedLoopJoin
from spark_apps.semistream.joins.meshjoin import MeshJoin
from spark_apps.semistream.joins.optimised_x_hybridjoin import OptimisedXHybridJoin
from spark_apps.semistream.joins.ordered_meshjoin import OrderedMeshJoin
from spark_apps.semistream.joins.r_meshjoin import RMeshJoin
from spark_apps.semistream.joins.semi_stream_join import SemiStreamJoin
from spark_apps.semistream.joins.timed_chybridjoin import TimedCHybridJoin
from spark_apps.semistream.joins.x_hybridjoin import XHybridJoin

__all__ = [
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
