"""Hash table and queue of stream tuples behave like plain lists and dictionaries."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.stream_table import START
from semistream.waiting_tuples import WaitingTuples

SLOTS = 24
SCHEMA = pa.schema([pa.field("n", pa.int64()), pa.field("note", pa.string()), pa.field("new", pa.bool_())])

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(st.integers(0, 6), min_size=1, max_size=8)),
        st.tuples(st.just("pop"), st.lists(st.integers(0, 6), unique=True, min_size=1, max_size=4)),
        st.tuples(st.just("delete"), st.lists(st.floats(0, 0.99), min_size=1, max_size=4)),
        st.tuples(st.just("at"), st.floats(0, 0.99)),
    ),
    max_size=40,
)


def _row(number: int) -> dict[str, Any]:
    return {"n": number, "note": None if number % 4 == 0 else "x" * (number * 7 % 80), "new": number % 3 == 0}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(actions=ACTIONS, room=st.integers(1, 30))
def test_waiting_tuples_behave_as_an_ordered_dictionary(actions: list[Any], room: int) -> None:
    """After any insertions, deletions and look-ups, the same tuples wait in the same order with the same columns."""
    waiting = WaitingTuples(SCHEMA, SLOTS, heap_blocks=3 * SLOTS)
    model: dict[int, int] = {}  # number to key, in order of arrival
    count = 0
    found_slots, found_rows = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    for action, value in actions:
        if action == "insert":
            keys = np.array(value[: waiting.room], dtype=np.int64)
            numbers = np.arange(count, count + len(keys))
            batch = pa.RecordBatch.from_pylist([_row(int(n)) for n in numbers], schema=SCHEMA)
            waiting.insert(batch, np.arange(len(keys)), keys, numbers)
            model.update(zip(numbers.tolist(), keys.tolist(), strict=True))
            count += len(keys)
        elif action == "pop":
            popped: list[tuple[int, int]] = []
            cursor = START
            while cursor[0] < len(value):
                found, cursor = waiting.table.pop(np.array(value), cursor, found_slots, found_rows)
                slots = found_slots[:found]
                rows = pa.RecordBatch.from_arrays(waiting.rows.take(slots), schema=SCHEMA).to_pylist()
                numbers = waiting.rows.identify(slots)
                assert rows == [_row(int(n)) for n in numbers]
                popped += zip(numbers.tolist(), (value[r] for r in found_rows[:found]), strict=True)
                waiting.release(slots)
            assert sorted(popped) == sorted((n, k) for n, k in model.items() if k in value)
            model = {n: k for n, k in model.items() if k not in value}
        elif action == "delete" and model:
            numbers = np.unique([list(model)[int(f * len(model))] for f in value])
            slots = np.array([s for s in waiting.queue.oldest(SLOTS) if waiting.rows.ids[s] in numbers])
            waiting.delete(slots)
            model = {n: k for n, k in model.items() if n not in numbers}
        elif action == "at" and model:
            slot = waiting.queue.at(value)
            assert waiting.rows.ids[slot] == list(model)[int(value * len(model))]
        assert waiting.rows.identify(waiting.queue.oldest(SLOTS)).tolist() == list(model)
        probed = waiting.table.probe(np.arange(7), START, np.empty(SLOTS, np.int32), np.empty(SLOTS, np.int32))
        assert probed[0] == len(model) == SLOTS - waiting.room
