"""A pipeline's file chooses its join by name; all joins write the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from semistream.planning import Skew
from semistream.relation import write_page_file

from foundation.errors import SnapshotError
from spark_apps.enriching.task_join import TaskJoin
from spark_apps.enriching.worker_join import JOINS, Joins, borrowed_join, check_join, construct_join, parameters
from spark_apps.monitoring.task_counts import TaskCounts
from spark_apps.pipeline.definition import JoinName, Pipeline, read_pipeline
from spark_apps.pipeline.join_plan import JoinPlan
from tests.spark_apps.application import PIPELINES

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 800
STATIONS = pa.table(
    {
        "station": [f"station {number}" for number in range(ROWS)],
        "station_key": pa.array(range(ROWS), pa.uint32()),
        "place": [None if number % 7 == 0 else f"Dórf {number % 50}" for number in range(ROWS)],
        "altitude": [None if number % 5 == 0 else number / 8 for number in range(ROWS)],
    }
)
ASKED = [*range(ROWS + 50), *[3, 4, 5] * 200, *range(0, ROWS, 3)]  # includes 50 unknown stations
EVENTS = pa.record_batch({"kafka_offset": range(len(ASKED)), "station": [f"station {number}" for number in ASKED]})


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Write all stations into a page file."""
    write_page_file(tmp_path / "v1.pages", STATIONS.schema, STATIONS.to_batches(), ["station"])
    return tmp_path / "v1.pages"


def readings(**changed: object) -> Pipeline:
    """Return the second pipeline, with these changes."""
    return read_pipeline("readings", PIPELINES).model_copy(update=changed)


def test_a_pipelines_file_can_name_every_join_of_the_library() -> None:
    """The names that the file's format allows are those that the library has for joins by equality, and "auto"."""
    assert set(get_args(JoinName)) == {*JOINS, "auto"}


@pytest.mark.parametrize("name", JOINS)
def test_every_join_gives_the_same_rows(name: JoinName, snapshot: Path) -> None:
    """Each join outputs one row for each event, with its station's columns or nulls, in a second task too."""
    expected = [
        {"kafka_offset": place, **(STATIONS.slice(number, 1).to_pylist() or [dict.fromkeys(STATIONS.column_names)])[0]}
        | {"station": f"station {number}"}
        for place, number in enumerate(ASKED)
    ]
    for _task in range(2):
        with borrowed_join(readings(join=name), EVENTS.schema, snapshot, JoinPlan()) as join:
            assert type(join) is JOINS[name]
            (joined,) = TaskJoin(join, EVENTS.schema, TaskCounts()).joined(
                [EVENTS.slice(0, 7), EVENTS.slice(7, 0), EVENTS.slice(7)]
            )
        assert joined.to_pylist() == expected


@pytest.mark.parametrize("below", [0, 1e9])
@pytest.mark.parametrize("name", JOINS)
def test_a_join_works_by_its_plan(name: JoinName, snapshot: Path, below: float) -> None:
    """The planned join is made with the planned parameters, and gives the same rows."""
    plan = JoinPlan(
        name, front_stage=0.4, partition_pages=1 if name in {"inlj", "cinlj"} else 2, single_rows_below=below
    )
    with borrowed_join(readings(join="auto"), EVENTS.schema, snapshot, plan) as join:
        assert type(join) is JOINS[name]
        assert (join.shares.front_stage, join.disk_buffer.partition_pages) == (0.4, plan.partition_pages)
        (joined,) = TaskJoin(join, EVENTS.schema, TaskCounts()).joined([EVENTS])
    assert joined["station_key"].to_pylist() == [number if number < ROWS else None for number in ASKED]


@pytest.mark.parametrize(
    ("changed", "plan", "join"),
    [
        ({"join": "auto"}, JoinPlan("cmeshjoin", 0.5), JoinPlan("cmeshjoin", 0.5)),
        ({"join": "cmeshjoin"}, JoinPlan("cmeshjoin", 0.5), JoinPlan("cmeshjoin", 0.5)),
        ({"join": "inlj"}, JoinPlan("cmeshjoin", 0.5), JoinPlan("inlj")),
        ({"join": "auto", "batch_seconds": 2.0}, JoinPlan("cmeshjoin", 0.5), JoinPlan("chybridjoin")),
        ({"join": "auto", "batch_seconds": 2.0}, JoinPlan("chybridjoin", 0.5), JoinPlan("chybridjoin", 0.5)),
    ],
)
def test_a_plan_for_another_join_is_not_used(changed: dict[str, Any], plan: JoinPlan, join: JoinPlan) -> None:
    """A file that was changed since its snapshot was published is obeyed, with the papers' parameters."""
    assert parameters(readings(**changed), plan) == join


def test_a_task_holds_a_bounded_part_of_its_events(snapshot: Path) -> None:
    """A task joins and outputs its events whenever its buffer is full; order and rows stay the same."""
    most = EVENTS.slice(0, 300).nbytes
    portions = [EVENTS.slice(first, 40) for first in range(0, EVENTS.num_rows, 40)]
    coming = iter(portions)
    with borrowed_join(readings(), EVENTS.schema, snapshot, JoinPlan()) as join:
        joined = TaskJoin(join, EVENTS.schema, TaskCounts(), most).joined(coming)
        given = [next(joined)]
        assert next(coming).equals(portions[8])  # the first eight portions filled the buffer
        given += list(joined)
    assert min(table.num_rows for table in given[:-1]) > 40  # the task has released the rows that it has output
    rows = pa.concat_tables(given)
    asked = [n for place, n in enumerate(ASKED) if not 320 <= place < 360]
    assert rows["station"].to_pylist() == [f"station {n}" for n in asked]
    assert rows["station_key"].to_pylist() == [n if n < ROWS else None for n in asked]


def test_a_task_without_events_has_no_rows(snapshot: Path) -> None:
    """A task outputs no rows if all events of its portion were rejected."""
    with borrowed_join(readings(), EVENTS.schema, snapshot, JoinPlan()) as join:
        assert list(TaskJoin(join, EVENTS.schema, TaskCounts()).joined([])) == []
        assert list(TaskJoin(join, EVENTS.schema, TaskCounts()).joined([EVENTS.slice(0, 0)])) == []


def test_a_whole_snapshot_passes(snapshot: Path) -> None:
    """The check accepts a complete snapshot and keeps none of it in memory."""
    check_join(readings(), snapshot, JoinPlan())


@pytest.mark.parametrize("damage", ["truncated", "a bit of a page", "empty", "gone"])
def test_a_damaged_snapshot_is_refused(snapshot: Path, damage: str) -> None:
    """A damaged snapshot is refused before Spark starts, in one line that states how to publish another."""
    content = bytearray(snapshot.read_bytes())
    content[5000] ^= 1
    damaged: dict[str, bytes | bytearray] = {"truncated": content[:-100], "a bit of a page": content, "empty": b""}
    snapshot.unlink() if damage == "gone" else snapshot.write_bytes(damaged[damage])
    with pytest.raises(
        SnapshotError, match=r"'readings' cannot be joined .* Dag readings\.refresh, which publishes"
    ) as caught:
        check_join(readings(), snapshot, JoinPlan())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("master", "says"),
    [
        ({"key": ["wind"]}, "stream key .* and relation key .* must be of the same kinds"),
        ({"columns": ["station_key", "colour"]}, r"columns must be of the relation .* got \['colour'\]"),
    ],
)
def test_a_snapshot_of_another_shape_is_refused(snapshot: Path, master: dict[str, list[str]], says: str) -> None:
    """A snapshot with another key type or without a required column is refused."""
    other = readings(master=readings().master.model_copy(update=master))
    with pytest.raises(SnapshotError, match=says):
        check_join(other, snapshot, JoinPlan())


@pytest.mark.parametrize("join", ["auto", "chybridjoin"])
def test_a_workers_join_follows_the_stream_unless_the_file_names_it(tmp_path: Path, join: JoinName) -> None:
    """Planned for a flat stream, the join of a file with "auto" gets a larger cache after some tasks of a steep one."""
    products, schema = 100_000, pa.schema([("product_id", pa.int64())])
    numbers = pa.array(range(products), pa.int64())
    table = pa.table({"product_id": numbers, "product_key": numbers, "price_cents": numbers})
    write_page_file(tmp_path / "v1.pages", table.schema, table.to_batches(), ["product_id"], 2_000)
    sales = read_pipeline("sales").model_copy(update={"join": join, "memory_mb": 1})
    flat = JoinPlan("chybridjoin", front_stage=0.0, exponent=0.0)
    heads = Skew(products, 1.3).head(np.arange(products + 1))
    joins = Joins(construct_join)
    for task in range(8):
        keys = np.searchsorted(heads, np.random.default_rng(task).random(50_000), side="right") - 1
        events = pa.RecordBatch.from_arrays([pa.array(keys)], schema=schema)
        with joins(sales, schema, tmp_path / "v1.pages", flat) as lent:
            (joined,) = TaskJoin(lent, schema, TaskCounts()).joined([events])
        assert joined["product_key"].to_numpy().tolist() == keys.tolist()
    assert joins.idle is not None
    assert (joins.idle.shares.front_stage > 0.05) == (join == "auto")
