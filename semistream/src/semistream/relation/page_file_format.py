"""The layout of a page file.

    magic | pages | index keys | index positions | page directory | footer | length and checksum of the footer | magic

A page is one Arrow IPC message with `page_rows` consecutive rows. If the key is not one integer, the message has one
more column with the fingerprints of the rows. Pages and index start at multiples of `ALIGNMENT`, as O_DIRECT requires.
The directory has the offset, length and checksum of each page. The footer is JSON with the schema, the offsets of index
and directory, and the checksums of the directory and of each part of the index.
"""

import base64
import json
import struct
import zlib
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

__all__ = [
    "ALIGNMENT",
    "DIRECTORY",
    "FINGERPRINT",
    "MAGIC",
    "Footer",
    "aligned",
    "check_schema",
    "named",
    "schema_from_text",
    "schema_to_text",
    "stored_schema",
]

MAGIC = b"FRESHET2"
ALIGNMENT = 4096
FINGERPRINT = "__fingerprint"
DIRECTORY = np.dtype([("offset", np.int64), ("length", np.int64), ("checksum", np.int64)])
_TRAILER = struct.Struct("<QI8s")


@dataclass(frozen=True)
class Footer:
    """The metadata that a reader needs to find pages and index in the file."""

    schema: str  # of the relation, as base64 of Arrow IPC
    key: list[str]
    row_count: int
    page_rows: int
    unique: bool
    index_keys: int  # offsets in the file
    index_positions: int
    index_size: int  # places of the index
    index_checksums: list[int]  # of each part, keys and positions together
    directory: int
    directory_checksum: int

    def to_bytes(self) -> bytes:
        """Serialise the footer, its length and checksum, and the magic that ends the file."""
        text = json.dumps(asdict(self)).encode()
        return text + _TRAILER.pack(len(text), zlib.crc32(text), MAGIC)

    @classmethod
    def from_file(cls, content: memoryview, name: str) -> "Footer":
        """Read the footer at the end of a file."""
        problem = f"{name} must be a complete page file: build it again"
        if len(content) < len(MAGIC) + _TRAILER.size or bytes(content[: len(MAGIC)]) != MAGIC:
            raise ValueError(problem)
        length, checksum, magic = _TRAILER.unpack(content[-_TRAILER.size :])
        text = bytes(content[-_TRAILER.size - length : -_TRAILER.size])
        if magic != MAGIC or zlib.crc32(text) != checksum:
            raise ValueError(problem)
        return cls(**json.loads(text))


def schema_to_text(schema: pa.Schema) -> str:
    """Serialise a schema."""
    return base64.b64encode(schema.serialize()).decode()


def schema_from_text(text: str) -> pa.Schema:
    """Restore a schema."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def stored_schema(schema: pa.Schema, *, exact: bool) -> pa.Schema:
    """Add the column of fingerprints that pages have when the key is not one integer."""
    return schema if exact else schema.append(pa.field(FINGERPRINT, pa.int64(), nullable=False))


def check_schema(schema: pa.Schema) -> None:
    """Refuse dictionary-encoded columns: a page has no place for the values of a dictionary."""
    for field in schema:
        if _has_dictionary(field.type):
            raise ValueError(
                f"column {field.name} of a page file must not be dictionary-encoded, got {field.type}: "
                "cast it to the type of its values"
            )


def named(schema: pa.Schema) -> str:
    """Return columns and their types as text, for an error message."""
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _has_dictionary(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) or any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def aligned(offset: int) -> int:
    """Round an offset up to a multiple of the alignment."""
    return -(-offset // ALIGNMENT) * ALIGNMENT
