"""The master data as the stream reads it: a versioned Arrow file in the order of estimated access frequency.

A version is complete or not there: it is written beside, synced, and renamed into place; then CURRENT names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from services.warehouse import connect
from spark_apps.semistream.relation.page_file import PageFile
from spark_apps.semistream.relation.page_file_writer import write_page_file

if TYPE_CHECKING:
    from pathlib import Path

    from services.warehouse import Login

SCHEMA = pa.schema([("product_id", pa.int64()), ("product_key", pa.int64()), ("price_cents", pa.int64())])
IN_ORDER = """
    SELECT product_id, product_key, price_cents FROM product LEFT JOIN product_frequency USING (product_id)
    ORDER BY access_frequency DESC, product_id
"""


class SnapshotError(Exception):
    """A snapshot cannot be published or read; the message says why and what to do."""


def publish(reader: Login, folder: Path) -> tuple[int, int]:
    """Publish the product table's rows, most frequent first, and return the version and its number of rows."""
    with connect(reader) as connection, connection.cursor() as cursor:
        cursor.execute(IN_ORDER)
        rows = cursor.fetchall()
    if not rows:
        raise SnapshotError(
            "`product` is empty: nothing is published. Load it (Dag prepare_warehouse), then try again."
        )
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    version = (current_version(folder) or 0) + 1
    write_page_file(path_of(folder, version), SCHEMA, pa.table(columns, SCHEMA).to_batches(), ["product_id"])
    pointer = folder / "CURRENT.half"
    pointer.write_text(str(version))
    pointer.replace(folder / "CURRENT")
    return version, len(rows)


def current_version(folder: Path) -> int | None:
    """Return the version that readers should use, None when nothing was published yet."""
    pointer = folder / "CURRENT"
    return int(pointer.read_text()) if pointer.exists() else None


def path_of(folder: Path, version: int) -> Path:
    """The file of a version."""
    return folder / f"v{version:06d}.arrow"


def current(folder: Path) -> Path:
    """The file that readers should use."""
    version = current_version(folder)
    if version is None:
        raise SnapshotError(f"no snapshot in {folder}. The Dag refresh_master_order publishes one.")
    return path_of(folder, version)


def read(folder: Path, version: int) -> pa.Table:
    """Read a version whole."""
    relation = PageFile(path_of(folder, version))
    return pa.Table.from_batches([relation.read_page(page).rows for page in range(relation.pages)])
