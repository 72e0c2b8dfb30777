"""A believable catalogue of products, in an order that has nothing to do with how they sell."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv

from services.warehouse import connect

if TYPE_CHECKING:
    from services.warehouse import Login

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
CATEGORIES = ("kitchen", "garden", "outdoor", "home", "tools", "clothing")
COLUMNS = ("product_id", "product_key", "name", "vendor", "category", "price_cents")
CENTS = (99, 50_000)


def make_catalogue(rows: int, seed: int) -> pa.Table:
    """Make products 1..rows; warehouse keys are a permutation of the same numbers."""
    random = np.random.default_rng(seed)
    ids = np.arange(1, rows + 1)

    def pick(words: tuple[str, ...]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(
            random.integers(0, len(words), rows, np.int32), list(words)
        ).dictionary_decode()

    vendor = compute.binary_join_element_wise(
        pick(MAKERS), pa.array(random.integers(1, 400, rows)).cast("string"), " & "
    )
    name = compute.binary_join_element_wise(pick(LOOKS), pick(KINDS), pa.array(ids).cast("string"), " ")
    columns = [ids, random.permutation(ids), name, vendor, pick(CATEGORIES), random.integers(*CENTS, rows)]
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def load_catalogue(owner: Login, rows: int, seed: int = 1) -> int:
    """Fill the product table, all or nothing, unless it has rows; return how many it has now."""
    with connect(owner, local_infile=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM product")
        ((present,),) = cursor.fetchall()
        if present:
            return int(present)
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            csv.write_csv(make_catalogue(rows, seed), file.name, csv.WriteOptions(include_header=False))
            cursor.execute(
                f"LOAD DATA LOCAL INFILE %s INTO TABLE product CHARACTER SET utf8mb4 "
                f"FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ({', '.join(COLUMNS)})",
                (file.name,),
            )
        cursor.execute("SELECT COUNT(*) FROM product")
        ((loaded,),) = cursor.fetchall()
        if loaded != rows:
            raise RuntimeError(
                f"{loaded} of {rows} products were loaded into `product`; nothing was kept. Run it again."
            )
    return rows
