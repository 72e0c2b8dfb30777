"""Many rows into a table of the warehouse, by LOAD DATA, all or nothing."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import IO, TYPE_CHECKING

import pyarrow as pa
from pyarrow import csv

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from services.warehouse import Connection

CSV = csv.WriteOptions(include_header=False)


class BulkLoadError(Exception):
    """Rows were not taken over as they are; the message says how many, and the transaction must not be committed."""


def load_rows(connection: Connection, table: str, chunks: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """Append chunks to a table in the connection's transaction, and yield after each how many rows are in so far.

    LOAD DATA LOCAL skips a row that it cannot use and changes a value that does not fit, with a warning: here either
    is an error. The connection must have been opened with `local_infile`.
    """
    loaded = 0
    with connection.cursor() as cursor, closing(_written_ahead(chunks)) as files:
        for file, chunk in files:
            names = ", ".join(f"`{name}`" for name in chunk.schema.names)
            with file:
                taken = cursor.execute(
                    f"LOAD DATA LOCAL INFILE %s INTO TABLE `{table}` CHARACTER SET utf8mb4 "
                    f"FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' ({names})",
                    (file.name,),
                )
            cursor.execute("SHOW WARNINGS LIMIT 1")
            warnings = cursor.fetchall()
            if taken != chunk.num_rows or warnings:
                why = warnings[0][2] if warnings else "no reason given"
                raise BulkLoadError(
                    f"{taken} of {chunk.num_rows} rows were taken over into `{table}` after the first {loaded} "
                    f"({why}); nothing is kept. Correct the rows, then load them again."
                )
            loaded += taken
            yield loaded


def _written_ahead(chunks: Iterable[pa.RecordBatch]) -> Generator[tuple[IO[bytes], pa.RecordBatch]]:
    """Write each chunk to a file of its own while the server takes the one before; whoever gets it closes it."""
    remaining = iter(chunks)

    def write() -> tuple[IO[bytes], pa.RecordBatch] | None:
        chunk = next(remaining, None)
        if chunk is None:
            return None
        file = tempfile.NamedTemporaryFile(suffix=".csv")  # noqa: SIM115  # the caller's
        csv.write_csv(chunk, file, CSV)
        file.flush()
        return file, chunk

    with ThreadPoolExecutor(1) as writer:
        coming = writer.submit(write)
        while (written := coming.result()) is not None:
            coming = writer.submit(write)
            yield written
