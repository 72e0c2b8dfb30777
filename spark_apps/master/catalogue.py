"""Make and load the demo's catalogue of products: about 120 bytes a row, in an order independent of their sales."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute

from foundation.connections import connect
from spark_apps.warehouse.bulk_load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from foundation.connections import Login

MAKERS = (
    "Alder",
    "Birch",
    "Cedar",
    "Dunlin",
    "Egret",
    "Fulmar",
    "Garnet",
    "Heron",
    "Ibis",
    "Jasper",
    "Kestrel",
    "Linden",
)
KINDS = ("lamp", "kettle", "chair", "clock", "tent", "mug", "boot", "coat", "drill", "rake", "scale", "stool")
LOOKS = ("amber", "brass", "coral", "dusk", "elm", "flint", "gold", "hazel", "ivory", "jade", "khaki", "lilac")
STUFFS = ("ash", "bamboo", "canvas", "copper", "felt", "glass", "iron", "leather", "linen", "oak", "steel", "wool")
CATEGORIES = ("kitchen", "garden", "outdoor", "home", "tools", "clothing")
CENTS = (99, 50_000)
GRAMS = (20, 20_000)
LARGEST_MAKER = 400
FIRST_BARCODE = 400_000_000_000  # twelve digits; the thirteenth is the check digit
CHUNK_ROWS = 100_000


def make_catalogue(rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Make products 1..rows in chunks. Warehouse keys are a permutation of these numbers (in memory: 4 bytes a row)."""
    keys = np.random.default_rng(seed).permutation(np.arange(1, rows + 1, dtype=np.uint32))
    for start in range(0, rows, CHUNK_ROWS):
        chunk = keys[start : start + CHUNK_ROWS]
        yield _make_chunk(np.arange(start + 1, start + 1 + len(chunk)), chunk, np.random.default_rng((seed, start)))


def load_catalogue(owner: Login, rows: int, seed: int = 1, report: Callable[[str], None] = lambda _line: None) -> int:
    """Fill the product table in one transaction, unless it has rows; return how many it has."""
    with connect(owner, bulk=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM product")
            ((present,),) = cursor.fetchall()
        if present:
            return int(present)
        loaded = 0
        for chunk in _made_ahead(make_catalogue(rows, seed)):
            loaded += load(connection, "product", pa.Table.from_batches([chunk]))
            report(f"{loaded:,} of {rows:,} products loaded ({loaded / rows:.0%})")
    return loaded


def _made_ahead(chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make each chunk while the server loads the previous one."""
    with ThreadPoolExecutor(1) as maker:
        next_chunk = maker.submit(next, chunks, None)
        while (chunk := next_chunk.result()) is not None:
            next_chunk = maker.submit(next, chunks, None)
            yield chunk


def _make_chunk(ids: np.ndarray, keys: np.ndarray, random: np.random.Generator) -> pa.RecordBatch:
    rows = len(ids)

    def pick(words: tuple[str, ...]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(random.integers(0, len(words), rows, np.int32), words).dictionary_decode()

    kind, look, category = pick(KINDS), pick(LOOKS), pick(CATEGORIES)
    vendor = _join(" & ", pick(MAKERS), pa.array(random.integers(1, LARGEST_MAKER, rows)).cast("string"))
    columns = {
        "product_id": ids,
        "product_key": keys,
        "name": _join(" ", look, kind, pa.array(ids).cast("string")),
        "vendor": vendor,
        "category": category,
        "price_cents": random.integers(*CENTS, rows),
        "barcode": pa.array(_ean13(FIRST_BARCODE + ids)).cast("string"),
        "weight_grams": random.integers(*GRAMS, rows),
        "description": _join(" ", "A", kind, "of", pick(STUFFS), "for", category, "by", vendor),
    }
    return pa.RecordBatch.from_pydict(columns)


def _join(separator: str, *words: pa.Array | str) -> pa.Array:
    return compute.binary_join_element_wise(*words, separator)


def _ean13(twelve: np.ndarray) -> np.ndarray:
    """Append the check digit: with it, the digits weighted 1 and 3 in turn add up to a multiple of ten."""
    digits = twelve[:, np.newaxis] // 10 ** np.arange(12) % 10
    weighted = digits @ np.tile([3, 1], 6)
    thirteen: np.ndarray = twelve * 10 + -weighted % 10
    return thirteen
