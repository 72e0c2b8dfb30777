"""Keys of all types match if and only if their values are equal."""

from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from semistream.joins import CHybridJoin, MeshJoin, OrderedMeshJoin, SemiStreamJoin
from semistream.keys import Fingerprint, fingerprint
from semistream.relation import MemoryRelation

from tests.naive import equal_keys, multiset, nested_loop_join

JOINS: list[type[SemiStreamJoin]] = [CHybridJoin, MeshJoin, OrderedMeshJoin]
SIGNED = pa.array([-1, -(2**63), 5, 2**63 - 1, None], pa.int64())
UNSIGNED = pa.array([2**64 - 1, 2**63, 5, 2**63 - 1, None], pa.uint64())
SMALL = pa.array([-1, 0, 5, None, 7], pa.int8())


@pytest.mark.parametrize("algorithm", JOINS)
@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    ("of_stream", "of_relation"),
    [(SIGNED, UNSIGNED), (UNSIGNED, SIGNED), (UNSIGNED, UNSIGNED), (SMALL, UNSIGNED), (SMALL, SIGNED), (SIGNED, SMALL)],
    ids=["signed-unsigned", "unsigned-signed", "unsigned", "small-unsigned", "small-signed", "signed-small"],
)
def test_integers_of_any_width_and_sign_match_by_value(
    algorithm: type[SemiStreamJoin],
    of_stream: pa.Array,
    of_relation: pa.Array,
    columns: int,
    collide: bool,  # noqa: FBT001
) -> None:
    """-1 does not match 2^64 - 1, alone or in a key of two columns, even if all fingerprints are equal."""
    hashed: Fingerprint = (lambda values: np.zeros(len(values[0]), dtype=np.int64)) if collide else fingerprint
    names = ["a", "b"][:columns]
    stream = pa.table({**dict.fromkeys(names, of_stream), "n": range(5)})
    master = pa.table({**dict.fromkeys([f"id_{n}" for n in names], of_relation.drop_null()), "name": list("pqrs")})
    key = [f"id_{name}" for name in names]
    relation = MemoryRelation(master, key, fingerprint=hashed)
    join = algorithm(relation, stream.schema, names, 100_000, how="left")
    out = [row for batch in stream.to_batches() for row in join.feed(batch)] + join.finish()
    assert multiset(out) == nested_loop_join(stream, master, equal_keys(names, key), ["name"], outer=True)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([date(2020, 2, 3), None], pa.date32()),
        pa.array([date(2020, 2, 3), None], pa.date64()),
        pa.array([time(1, 2, 3), None], pa.time32("s")),
        pa.array([time(1, 2, 3), None], pa.time64("us")),
        pa.array([datetime(2020, 2, 3, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    ],
    ids=lambda values: str(values.type),
)
def test_a_time_may_be_null(values: Any) -> None:  # noqa: ANN401 - an array
    """Dates and times match by value; a null is output as unmatched."""
    stream = pa.table({"a": values, "n": [0, 1]})
    master = pa.table({"id_a": values.drop_null(), "name": ["tea"]})
    join = CHybridJoin(MemoryRelation(master, ["id_a"]), stream.schema, "a", 100_000, how="left")
    out = [row for batch in stream.to_batches() for row in join.feed(batch)] + join.finish()
    assert multiset(out) == nested_loop_join(stream, master, equal_keys(["a"], ["id_a"]), ["name"], outer=True)
