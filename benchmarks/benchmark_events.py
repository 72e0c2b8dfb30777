"""How fast one core reads events, by the form of the event: the whole reader, from Kafka's bytes to Arrow columns.

Run it with `python -m benchmarks.benchmark_events`. The fields are those of the pipeline `sales`, with a text added.
Each form is the same event written in another way, as producers in use write it. Arrow batches have 65,536 events, as
in the stream. The best of five runs counts, in processor time.
"""

import time
from collections.abc import Callable

import pyarrow as pa

from spark_apps.events.reader import EventReader
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.event_field import EventField

EVENTS = 65_536
CAREFUL_EVENTS = 4_096
ROUNDS = 5
DEEP = 70  # levels, more than the scanner follows
PLAIN = (
    '{"event_id":"01890000-0000-7000-8000-0000%08x","product_id":%d,"quantity":2,"store_id":37,'
    '"sold_at":"2026-01-02T03:04:05.678Z","note":"two lamps, gift-wrapped"%s}'
)
MORE = ',"customer":{"id":7,"tags":["a","b"],"address":{"city":"Riga","lines":[]}},"ratio":0.30000000000000004441'
ORDER = (
    '{"OrderId":"01890000-0000-7000-8000-0000%08X","line":{"no":1,"items":[{"sku":"x","product-id":"%d","colours":'
    '["red","green"]},{"product-id":9}],"total amount":"1234.50"},"coupon":null,"paid":true,"due":"2026-02-28",'
    '"placed":"2026-07-02 03:04:05","sent":1767323045678,"signature":"3q2+7w==","weight":0.25}'
)
ORDER_FIELDS = {
    "order_id": {"type": "uuid", "path": "$.OrderId"},
    "product_id": {"type": "int64", "path": "$.line.items[0].product-id", "quoted": True},
    "colours": {"type": "json", "path": "$.line.items[0].colours"},
    "amount": {"type": "decimal(10, 2)", "path": "$.line['total amount']", "quoted": True},
    "coupon": {"type": "string", "nullable": True},
    "channel": {"type": "string", "default": "shop"},
    "paid": "boolean",
    "due": "date",
    "placed_at": {"type": "timestamp", "path": "$.placed", "zone": "Europe/Berlin"},
    "sent_at": {"type": "timestamp", "path": "$.sent", "unit": "ms"},
    "signature": "bytes",
    "weight": "float64",
}
FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda event: event,
    "offset +02:00": lambda event: event.replace("678Z", "678+02:00"),
    "microseconds": lambda event: event.replace("678Z", "678901Z"),
    "nanoseconds, offset": lambda event: event.replace("678Z", "678901234+0200"),
    "no fraction": lambda event: event.replace(".678Z", "Z"),
    "escapes in a string": lambda event: event.replace("two lamps, ", r"\"two\" l\u00e4mps \ud83d\ude00\n"),
    "upper-case UUID": lambda event: event.replace("01890000-0000-7000-8000-0000", "0189ABCD-EF00-7000-8000-ABCD"),
    "ignored nested values": lambda event: event.replace("}", MORE + "}"),
    "ignored null": lambda event: event.replace("}", ',"coupon":null,"gift":null}'),
}


def seconds_an_event(reader: EventReader, events: list[bytes]) -> float:
    """Return the processor time that one of these events takes."""
    values = pa.array(events, pa.binary())
    partitions, offsets = pa.array([0] * len(events), pa.int32()), pa.array(range(len(events)), pa.int64())
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        batch = reader.read(partitions, offsets, values)
        times.append(time.process_time() - began)
        if batch.rejected:
            raise ValueError(f"every event must be readable, got {batch.rejected[0]}")
    return min(times) / len(events)


def main() -> None:
    """Measure each form and print a table."""
    source = read_pipeline("sales").source
    reader = EventReader({**source.fields, "note": EventField(type="string")}, ["product_id"])
    print("| form of the event | us an event | events a second |\n| --- | --- | --- |")
    for form, rewrite in FORMS.items():
        _print(form, reader, [rewrite(PLAIN % (number, number, "")).encode() for number in range(EVENTS)])
    orders = EventReader({name: EventField.model_validate(said) for name, said in ORDER_FIELDS.items()}, ["product_id"])
    _print("nested paths, every type", orders, [(ORDER % (number, number)).encode() for number in range(EVENTS)])
    deep = "[" * DEEP + "]" * DEEP
    _print("by the careful reader", reader, [(PLAIN % (1, 1, f',"deep":{deep}')).encode()] * CAREFUL_EVENTS)


def _print(form: str, reader: EventReader, events: list[bytes]) -> None:
    seconds = seconds_an_event(reader, events)
    print(f"| {form} | {seconds * 1e6:.2f} | {1 / seconds:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
