"""The papers' headline ratios, on the clock of a modelled machine of their years.

Run by `python -m benchmarks.benchmark_papers`. The clock is computed from exact counts, so that every machine prints
the same figures: pages, bytes and seeks of a 7200 rpm disk, and for the processor the two costs of the papers' cost
models that the algorithms differ in: looking a tuple of R up in H_S, and handling a stream tuple.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from semistream.joins import (
    CachedIndexNestedLoopJoin,
    CHybridJoin,
    CMeshJoin,
    HybridJoin,
    IndexNestedLoopJoin,
    MeshJoin,
    OptimisedXHybridJoin,
    RMeshJoin,
    SemiStreamJoin,
    XHybridJoin,
)
from semistream.load_shedder import LOOKUP_POSITION, LoadShedder, UpfrontShedder
from semistream.memory_split import Shares
from semistream.modelled_disk import DISK_7200_RPM
from semistream.page_choice import OldestFirst
from semistream.relation import MemoryRelation
from semistream.shed_store import ShedStore

LOOK_UP = 0.5e-6  # c_H, seconds: a few memory accesses and some objects on a Pentium IV
TUPLE = 1e-6  # c_S + c_A + c_E + c_O, seconds
ROW_BYTES = 120
BATCH = 32_768
STREAM = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("quantity", pa.int32(), nullable=False),
    ]
)  # 20 bytes a tuple
Ratio = tuple[str, float, str]


@dataclass(frozen=True)
class Setting:
    """Sizes of an experiment.

    Attributes:
        rows: tuples of R, 120 bytes each.
        tuples: stream tuples before the measurement, and as many in it.
        page_rows: rows of a disk partition, in the experiments of 003.
        large_page_rows: rows of a disk partition, in those of 000, 001 and 002.
        block_rows: rows of a 4 KB block, what INLJ reads.
        lone_tuples: stream tuples for INLJ, before the measurement and in it.
    """

    rows: int = 2_000_000
    tuples: int = 2_000_000
    page_rows: int = 4_000
    large_page_rows: int = 16_000
    block_rows: int = 34
    lone_tuples: int = 100_000


def relation(setting: Setting, page_rows: int, *, by_frequency: bool) -> MemoryRelation:
    """Build R, whose key 0 is the most frequent: in the order of frequency (000, 001, 002) or in none (003)."""
    keys = np.arange(setting.rows)
    if not by_frequency:
        keys = np.random.default_rng(5).permutation(setting.rows)
    columns = {f"column_{i}": keys for i in range(ROW_BYTES // 8 - 1)}
    return MemoryRelation(pa.table({"id": keys, **columns}), ["id"], page_rows)


def stream(setting: Setting, skew: float, tuples: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Draw keys from the Zipfian distribution with exponent 0 or 1, inverting the integral of 1/x (000's appendix)."""
    rng = np.random.default_rng(seed)
    for start in range(0, tuples, BATCH):
        size = min(BATCH, tuples - start)
        if skew:
            keys = np.minimum(np.power(setting.rows + 1.0, rng.random(size)).astype(np.int64) - 1, setting.rows - 1)
        else:
            keys = rng.integers(0, setting.rows, size)
        columns = [pa.array(keys), pa.array(keys), pa.array(keys.astype(np.int32))]
        yield pa.RecordBatch.from_arrays(columns, schema=STREAM)


def seconds(join: SemiStreamJoin) -> float:
    """Read the modelled machine's clock."""
    processor = join.probed * LOOK_UP + join.stream_buffer.arrived * TUPLE
    return DISK_7200_RPM.seconds(join.relation.counters) + processor


def service_rate(  # noqa: PLR0913, PLR0917 - an experiment's parameters
    algorithm: type[SemiStreamJoin],
    r: MemoryRelation,
    setting: Setting,
    share: float,
    skew: float = 1.0,
    shares: Shares | None = None,
) -> float:
    """Measure the stream tuples joined per modelled second with a share of R's size as memory, after a warm-up."""
    join = algorithm(r, STREAM, "key", int(setting.rows * ROW_BYTES * share), shares=shares)
    tuples = setting.lone_tuples if issubclass(algorithm, IndexNestedLoopJoin) else setting.tuples
    for batch in stream(setting, skew, tuples, seed=1):
        join.feed(batch)
    start, before = seconds(join), join.stream_buffer.arrived - join.pending
    for batch in stream(setting, skew, tuples, seed=2):
        join.feed(batch)
    return (join.stream_buffer.arrived - join.pending - before) / (seconds(join) - start)


def shedding_rate(
    r: MemoryRelation, setting: Setting, shedder: type[LoadShedder], position: float, load: float
) -> float:
    """Measure the service rate of CHYBRIDJOIN while `load` stream tuples arrive per modelled second."""
    with tempfile.TemporaryDirectory() as directory:
        join = CHybridJoin(
            r,
            STREAM,
            "key",
            int(setting.rows * ROW_BYTES * 0.1),
            how="left",
            shedder=shedder(ShedStore(Path(directory), STREAM)),
            page_choice=OldestFirst(position),
            shares=Shares(stream_buffer=0.3),
        )
        _overload(join, setting, load, seed=1)
        start = seconds(join)
        joined = _overload(join, setting, load, seed=2)
        return joined / (seconds(join) - start)


def _overload(join: CHybridJoin, setting: Setting, load: float, seed: int) -> int:
    """Let tuples arrive at a rate until enough of them have; what the stream buffer cannot take stays in the source."""
    joined, arrived, idle = 0, 0, 0.0
    start = seconds(join)
    for batch in stream(setting, 1.0, setting.tuples, seed):
        for piece in join.stream_buffer.pieces(batch):
            while arrived > (seconds(join) - start + idle) * load or not join.stream_buffer.has_room(piece):
                if not join.pending and not len(join.stream_buffer):
                    idle = arrived / load - (seconds(join) - start)
                joined += sum(rows.num_rows for rows in join.step())
            join.offer(piece)
            arrived += piece.num_rows
    return joined


def caching(setting: Setting) -> list[Ratio]:
    """Compare joins with and without the front stage: R in no order, memory 10% of R, e = 1 (003 section 5.2)."""
    r = relation(setting, setting.page_rows, by_frequency=False)
    blocks = relation(setting, setting.block_rows, by_frequency=False)

    def gain(cached: type[SemiStreamJoin], plain: type[SemiStreamJoin], of: MemoryRelation) -> float:
        return service_rate(cached, of, setting, 0.1) / service_rate(plain, of, setting, 0.1)

    return [
        ("CHYBRIDJOIN / HYBRIDJOIN", gain(CHybridJoin, HybridJoin, r), "2.8"),
        ("CMESHJOIN / MESHJOIN", gain(CMeshJoin, MeshJoin, r), "6.5"),
        ("CINLJ / INLJ", gain(CachedIndexNestedLoopJoin, IndexNestedLoopJoin, blocks), "2.5"),
    ]


def little_memory(setting: Setting) -> list[Ratio]:
    """Compare MESHJOIN with and without the front stage, memory 1% of R (003 section 5.2), where a tuple takes long."""
    r = relation(setting, setting.page_rows, by_frequency=False)
    fewer = replace(setting, tuples=setting.tuples // 10)
    ratio = service_rate(CMeshJoin, r, fewer, 0.01) / service_rate(MeshJoin, r, fewer, 0.01)
    return [("CMESHJOIN / MESHJOIN, memory 1% of R", ratio, "4")]


def shedding(setting: Setting) -> list[Ratio]:
    """Compare ways to shed while three times as many tuples arrive as CHYBRIDJOIN can join (003 section 5.3).

    Under shedding the rate varies from page to page: four times as many tuples are measured as elsewhere.
    """
    longer = replace(setting, tuples=4 * setting.tuples)
    ratios: list[Ratio] = []
    for order in ("no order", "order of frequency"):
        r = relation(setting, setting.page_rows, by_frequency=order == "order of frequency")
        load = 3 * service_rate(CHybridJoin, r, setting, 0.1)
        tuned, untuned = (shedding_rate(r, longer, LoadShedder, position, load) for position in (LOOKUP_POSITION, 0.0))
        if not ratios:
            upfront = shedding_rate(r, longer, UpfrontShedder, 0.0, load)
            ratios.append(("considered / upfront shedding", tuned / upfront, "3.1"))
        ratios.append((f"tuned / untuned, R in {order}", tuned / untuned, "1.33"))
    return ratios


def family(setting: Setting) -> list[Ratio]:
    """Compare the family of HYBRIDJOIN: R in the order of frequency, memory 50 MB for 240 MB (000, 001, 002)."""
    r = relation(setting, setting.large_page_rows, by_frequency=True)
    algorithms: list[type[SemiStreamJoin]] = [MeshJoin, RMeshJoin, HybridJoin, XHybridJoin, OptimisedXHybridJoin]
    mesh, r_mesh, hybrid, x, optimised = [service_rate(a, r, setting, 50 / 240) for a in algorithms]
    equal_parts = service_rate(XHybridJoin, r, setting, 50 / 240, shares=Shares(front_stage=0.0))  # one page each
    uniform = [service_rate(a, r, setting, 50 / 240, skew=0.0) for a in (MeshJoin, HybridJoin)]
    return [
        ("R-MESHJOIN / MESHJOIN", r_mesh / mesh, "slightly above 1"),
        ("HYBRIDJOIN / MESHJOIN, e = 1", hybrid / mesh, "above 1"),
        ("X-HYBRIDJOIN, equal parts / HYBRIDJOIN", equal_parts / hybrid, "1.4 to 2"),
        ("X-HYBRIDJOIN, 15% kept / HYBRIDJOIN", x / hybrid, "tuned, above that"),
        ("Optimised X- / X-HYBRIDJOIN", optimised / x, "above 1"),
        ("MESHJOIN / HYBRIDJOIN, e = 0", uniform[0] / uniform[1], "above 1"),
    ]


def few_waiting(setting: Setting) -> list[Ratio]:
    """Compare HYBRIDJOIN with MESHJOIN where about four tuples wait for a page that is found slower than it is read."""
    r = relation(setting, setting.page_rows, by_frequency=True)

    def ratio(skew: float) -> float:
        mesh, hybrid = (service_rate(a, r, setting, 0.0066, skew) for a in (MeshJoin, HybridJoin))
        return hybrid / mesh

    return [
        ("HYBRIDJOIN / MESHJOIN, few wait, e = 0", ratio(0.0), "below 1"),
        ("HYBRIDJOIN / MESHJOIN, few wait, e = 1", ratio(1.0), "above 1"),
    ]


def main() -> None:
    """Print each ratio beside the paper's."""
    setting = Setting()
    few = Setting(rows=400_000, tuples=50_000, page_rows=2_000)
    print(f"{'ratio of service rates':40} {'here':>6}  paper")
    for experiment in (caching, little_memory, shedding, family, few_waiting):
        for name, ratio, paper in experiment(few if experiment is few_waiting else setting):
            print(f"{name:40} {ratio:6.2f}  {paper}", flush=True)


if __name__ == "__main__":
    main()
