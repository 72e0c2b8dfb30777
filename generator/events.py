"""The schema of events, and batches of events as columns.

An event says that `quantity` pieces of product `product_id` were sold in store `store_id` at `sold_at`. `event_id` is
unique and ordered by time (a UUID of version 7). The Kafka message key is `product_id` in decimal digits.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from generator import encode
from generator.values import Int64s, Recipe, UInt8s, fill_values

SCHEMA = pa.schema(
    [
        pa.field("event_id", pa.string(), nullable=False),
        pa.field("product_id", pa.int64(), nullable=False),
        pa.field("quantity", pa.int64(), nullable=False),
        pa.field("store_id", pa.int64(), nullable=False),
        pa.field("sold_at", pa.timestamp("ms", "UTC"), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Events:
    """A batch of events, column by column; `tag` makes this run's event ids different from those of other runs."""

    numbers: Int64s
    products: Int64s
    quantities: Int64s
    stores: Int64s
    sold_at: Int64s
    faults: UInt8s
    tag: int

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, start: int, stop: int) -> "Events":
        """Return the events start..stop-1 of this batch, without a copy."""
        rows = slice(start, stop)
        return Events(
            self.numbers[rows],
            self.products[rows],
            self.quantities[rows],
            self.stores[rows],
            self.sold_at[rows],
            self.faults[rows],
            self.tag,
        )

    def json_lines(self) -> tuple[bytes, Int64s]:
        """Return one line of JSON for each event, and the index of each newline."""
        out = np.empty(len(self) * encode.LONGEST_EVENT, np.uint8)
        ends = np.empty(len(self), np.int64)
        if len(self) == 0:
            return b"", ends
        columns = (self.numbers, self.products, self.quantities, self.stores, self.sold_at, self.faults)
        encode.encode_events(*columns, self.tag, *encode.dates(self.sold_at), out, ends)
        return out[: ends[-1] + 1].tobytes(), ends

    def arrow(self) -> pa.RecordBatch:
        """Return the events as an Arrow batch; they must not be malformed."""
        width = encode.EVENT_ID_CHARACTERS
        text = np.empty(len(self) * width, np.uint8)
        encode.encode_event_ids(self.numbers, self.sold_at, self.tag, text)
        offsets = np.arange(len(self) + 1, dtype=np.int32) * np.int32(width)
        ids = pa.StringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(text))
        sold_at = pa.array(self.sold_at).cast(SCHEMA.field("sold_at").type)
        return pa.record_batch([ids, self.products, self.quantities, self.stores, sold_at], schema=SCHEMA)


def make_events(plan: Recipe, numbers: Int64s, sold_at: Int64s, tag: int) -> Events:
    """Make the events with these numbers, which must ascend."""
    products, quantities, stores = (np.empty(len(numbers), np.int64) for _ in range(3))
    faults = np.empty(len(numbers), np.uint8)
    fill_values(plan, numbers, products, quantities, stores, faults)
    return Events(numbers, products, quantities, stores, sold_at, faults, tag)
