"""Semi-stream joins: a fast, skewed stream S with master data R that is larger than memory.

    >>> import pyarrow as pa
    >>> from semistream import CHybridJoin, MemoryRelation
    >>> products = pa.table({"id": [1, 2, 3], "name": ["tea", "salt", "rice"]})
    >>> sales = pa.RecordBatch.from_pydict({"product": [3, 1, 3], "pieces": [5, 1, 2]})
    >>> join = CHybridJoin(MemoryRelation(products, ["id"]), sales.schema, on="product", memory=100_000)
    >>> pa.Table.from_batches(join.feed(sales) + join.finish()).sort_by("pieces").column("name").to_pylist()
    ['tea', 'rice', 'rice']

The folder `joins` has one algorithm per file, `relation` has the stores of R, and this folder has the parts of joins.

Docstrings cite five papers by name and year:

- MESHJOIN 2007: Polyzotis, Skiadopoulos, Vassiliadis, Simitsis, Frantzell, "Supporting Streaming Updates in an Active
  Data Warehouse".
- HYBRIDJOIN 2011: Naeem, Dobbie, Weber, "HYBRIDJOIN for Near-Real-Time Data Warehousing".
- Optimised X-HYBRIDJOIN 2012: Naeem, Dobbie, Weber, "Optimised X-HYBRIDJOIN for Near-Real-Time Data Warehousing".
- X-HYBRIDJOIN 2013: Naeem, Dobbie, Weber, "Efficient processing of streaming updates with archived master data in
  near-real-time data warehousing".
- CHYBRIDJOIN 2017: Naeem, Dobbie, Lutteroth, Weber, "Skewed Distributions in Semi-Stream Joins: How much can Caching
  help?", about the front stage and load shedding.
"""

from importlib.metadata import version

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
from semistream.page_choice import AwayFromShedding, OldestFirst
from semistream.relation import GrowingRelation, MemoryRelation, PageFile, Relation, write_page_file
from semistream.shed_store import ShedStore

__all__ = [
    "AwayFromShedding",
    "Between",
    "CHybridJoin",
    "CMeshJoin",
    "CachedIndexNestedLoopJoin",
    "Compare",
    "ConditionMeshJoin",
    "GrowingRelation",
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
    "__version__",
    "write_page_file",
]

__version__ = version("semistream")
