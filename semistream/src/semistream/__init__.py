"""Semi-stream joins: a fast, skewed stream S with master data R that is larger than memory.

Usable by itself, in a notebook for instance:

    >>> import pyarrow as pa
    >>> from semistream import CHybridJoin, MemoryRelation
    >>> products = pa.table({"id": [1, 2, 3], "name": ["tea", "salt", "rice"]})
    >>> sales = pa.RecordBatch.from_pydict({"product": [3, 1, 3], "pieces": [5, 1, 2]})
    >>> join = CHybridJoin(MemoryRelation(products, ["id"]), sales.schema, on="product", memory=100_000)
    >>> pa.Table.from_batches(join.feed(sales) + join.finish()).sort_by("pieces").column("name").to_pylist()
    ['tea', 'rice', 'rice']

The joins are in `joins`, one algorithm a file; the parts they are made of lie beside this file; `relation` has the
stores of R. Docstrings cite the papers by number: 004 MESHJOIN, 000 HYBRIDJOIN, 002 X-HYBRIDJOIN, 001 Optimised
X-HYBRIDJOIN, 003 the front stage and load shedding.
"""

from semistream.condition import Between, Compare
from semistream.joins import (
    CachedIndexNestedLoopJoin,
    CHybridJoin,
    CMeshJoin,
    ConditionMeshJoin,
    HybridJoin,
    IndexNestedLoopJoin,
    MeshJoin,
    OptimisedXHybridJoin,
    OrderedMeshJoin,
    RMeshJoin,
    SemiStreamJoin,
    TimedCHybridJoin,
    XHybridJoin,
)
from semistream.load_shedder import LoadShedder, UpfrontShedder
from semistream.memory_split import Shares
from semistream.page_choice import OldestFirst
from semistream.relation import MemoryRelation, PageFile, Relation, write_page_file
from semistream.shed_store import ShedStore

__all__ = [
    "Between",
    "CHybridJoin",
    "CMeshJoin",
    "CachedIndexNestedLoopJoin",
    "Compare",
    "ConditionMeshJoin",
    "HybridJoin",
    "IndexNestedLoopJoin",
    "LoadShedder",
    "MemoryRelation",
    "MeshJoin",
    "OldestFirst",
    "OptimisedXHybridJoin",
    "OrderedMeshJoin",
    "PageFile",
    "RMeshJoin",
    "Relation",
    "SemiStreamJoin",
    "Shares",
    "ShedStore",
    "TimedCHybridJoin",
    "UpfrontShedder",
    "XHybridJoin",
    "write_page_file",
]
