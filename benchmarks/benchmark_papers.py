"""The papers' main ratios, on the clock of a modelled machine from the papers' time.

Run it with `python -m benchmarks.benchmark_papers`. The clock is computed from exact counts, so every machine prints
the same figures. It counts pages, bytes and seeks of a 7200 rpm disk. For the processor it counts the two costs of the
papers' cost models in which the algorithms differ: looking up a tuple of R in H_S, and handling a stream tuple.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from semistream.joins import BY_NAME, CHybridJoin, IndexNestedLoopJoin, SemiStreamJoin
from semistream.load_shedder import LoadShedder, UpfrontShedder
from semistream.memory_split import Shares
from semistream.modelled_disk import DISK_7200_RPM
from semistream.page_choice import LOOKUP_POSITION, AwayFromShedding
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
)  # 20 bytes per tuple
Ratio = tuple[str, float, str]


@dataclass(frozen=True)
class Setting:
    """Sizes of an experiment.

    Attributes:
        rows: tuples of R, 120 bytes each.
        tuples: stream tuples before the measurement, and as many during it.
        page_rows: rows of a disk partition in the experiments of CHYBRIDJOIN 2017.
        large_page_rows: rows of a disk partition in the experiments of the other papers.
        block_rows: rows of a 4 KB block, which INLJ reads.
        lone_tuples: stream tuples for INLJ, before the measurement and during it.
    """

    rows: int = 2_000_000
    tuples: int = 2_000_000
    page_rows: int = 4_000
    large_page_rows: int = 16_000
    block_rows: int = 34
    lone_tuples: int = 100_000


def relation(setting: Setting, page_rows: int, *, by_frequency: bool) -> MemoryRelation:
    """Build R in the order of frequency, key 0 first, or in no order as in CHYBRIDJOIN 2017."""
    keys = np.arange(setting.rows)
    if not by_frequency:
        keys = np.random.default_rng(5).permutation(setting.rows)
    columns = {f"column_{i}": keys for i in range(ROW_BYTES // 8 - 1)}
    return MemoryRelation(pa.table({"id": keys, **columns}), ["id"], page_rows)


def stream(setting: Setting, skew: float, tuples: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Draw keys with Zipf exponent 0 or 1, by inverting the integral of 1/x (HYBRIDJOIN 2011, appendix)."""
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
    name: str,
    r: MemoryRelation,
    setting: Setting,
    share: float,
    skew: float = 1.0,
    shares: Shares | None = None,
) -> float:
    """Return the stream tuples that a join joins per modelled second, with a share of R's size as memory."""
    algorithm = BY_NAME[name]
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
    """Return the service rate of CHYBRIDJOIN while `load` stream tuples arrive per modelled second."""
    with tempfile.TemporaryDirectory() as directory:
        sheds = shedder(ShedStore(Path(directory), STREAM))
        join = CHybridJoin(
            r,
            STREAM,
            "key",
            int(setting.rows * ROW_BYTES * 0.1),
            how="left",
            shedder=sheds,
            page_choice=AwayFromShedding(sheds, position),
            shares=Shares(stream_buffer=0.3),
        )
        _overload(join, setting, load, seed=1)
        start = seconds(join)
        joined = _overload(join, setting, load, seed=2)
        return joined / (seconds(join) - start)


def _overload(join: CHybridJoin, setting: Setting, load: float, seed: int) -> int:
    """Let all tuples of a setting arrive at a rate; those that the stream buffer has no room for stay in the source."""
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
    """Compare joins with and without the front stage: R in no order, memory 10% of R, e = 1.

    CHYBRIDJOIN 2017, section 5.2.
    """
    r = relation(setting, setting.page_rows, by_frequency=False)
    blocks = relation(setting, setting.block_rows, by_frequency=False)

    def gain(cached: str, plain: str, of: MemoryRelation) -> float:
        return service_rate(cached, of, setting, 0.1) / service_rate(plain, of, setting, 0.1)

    return [
        ("CHYBRIDJOIN / HYBRIDJOIN", gain("chybridjoin", "hybridjoin", r), "2.8"),
        ("CMESHJOIN / MESHJOIN", gain("cmeshjoin", "meshjoin", r), "6.5"),
        ("CINLJ / INLJ", gain("cinlj", "inlj", blocks), "2.5"),
    ]


def little_memory(setting: Setting) -> list[Ratio]:
    """Compare MESHJOIN with and without the front stage, memory 1% of R (CHYBRIDJOIN 2017, section 5.2)."""
    r = relation(setting, setting.page_rows, by_frequency=False)
    fewer = replace(setting, tuples=setting.tuples // 10)  # each takes long
    ratio = service_rate("cmeshjoin", r, fewer, 0.01) / service_rate("meshjoin", r, fewer, 0.01)
    return [("CMESHJOIN / MESHJOIN, memory 1% of R", ratio, "4")]


def shedding(setting: Setting) -> list[Ratio]:
    """Compare ways to shed while three times as many tuples arrive as CHYBRIDJOIN can join.

    CHYBRIDJOIN 2017, section 5.3. The rate varies from page to page while tuples are shed, so this measures four times
    as many tuples as the other experiments.
    """
    longer = replace(setting, tuples=4 * setting.tuples)
    ratios: list[Ratio] = []
    for order in ("no order", "order of frequency"):
        r = relation(setting, setting.page_rows, by_frequency=order == "order of frequency")
        load = 3 * service_rate("chybridjoin", r, setting, 0.1)
        tuned, untuned = (shedding_rate(r, longer, LoadShedder, position, load) for position in (LOOKUP_POSITION, 0.0))
        if not ratios:
            upfront = shedding_rate(r, longer, UpfrontShedder, 0.0, load)
            ratios.append(("considered / upfront shedding", tuned / upfront, "3.1"))
        ratios.append((f"tuned / untuned, R in {order}", tuned / untuned, "1.33"))
    return ratios


def family(setting: Setting) -> list[Ratio]:
    """Compare MESHJOIN, HYBRIDJOIN and its successors: R in the order of frequency, memory 50 MB for 240 MB."""
    r = relation(setting, setting.large_page_rows, by_frequency=True)
    names = ("meshjoin", "r_meshjoin", "hybridjoin", "x_hybridjoin", "optimised_x_hybridjoin")
    mesh, r_mesh, hybrid, x, optimised = [service_rate(name, r, setting, 50 / 240) for name in names]
    equal_parts = service_rate("x_hybridjoin", r, setting, 50 / 240, shares=Shares(front_stage=0.0))  # one page each
    uniform = [service_rate(name, r, setting, 50 / 240, skew=0.0) for name in ("meshjoin", "hybridjoin")]
    return [
        ("R-MESHJOIN / MESHJOIN", r_mesh / mesh, "slightly above 1"),
        ("HYBRIDJOIN / MESHJOIN, e = 1", hybrid / mesh, "above 1"),
        ("X-HYBRIDJOIN, equal parts / HYBRIDJOIN", equal_parts / hybrid, "1.4 to 2"),
        ("X-HYBRIDJOIN, 15% kept / HYBRIDJOIN", x / hybrid, "tuned, above that"),
        ("Optimised X- / X-HYBRIDJOIN", optimised / x, "above 1"),
        ("MESHJOIN / HYBRIDJOIN, e = 0", uniform[0] / uniform[1], "above 1"),
    ]


def few_waiting(setting: Setting) -> list[Ratio]:
    """Compare HYBRIDJOIN with MESHJOIN when about four tuples wait per page and a seek takes longer than a transfer."""
    r = relation(setting, setting.page_rows, by_frequency=True)

    def ratio(skew: float) -> float:
        mesh, hybrid = (service_rate(name, r, setting, 0.0066, skew) for name in ("meshjoin", "hybridjoin"))
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
