"""An error in a pipeline's file states file, field, rule and value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from foundation.errors import PipelineError
from foundation.settings import ROOT
from spark_apps.pipeline.definition import read_pipeline

if TYPE_CHECKING:
    from pathlib import Path

SALES = (ROOT / "pipelines" / "sales.toml").read_text().replace('name = "sales"', 'name = "changed"')
MANY = "\n".join(f'more_{i} = "int64"' for i in range(60))


def written(folder: Path, text: str) -> Path:
    """Write a pipeline's file `changed` into a folder and return the folder."""
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "changed.toml").write_text(text)
    return folder / "pipelines"


def test_the_demos_pipeline_is_valid() -> None:
    """The demo's pipeline file is valid and has the demo's topics and key."""
    sales = read_pipeline("sales")
    assert (sales.source.topic, sales.enriched.topic, sales.master.key) == ("sales", "sales.enriched", ["product_id"])


def test_an_unknown_pipeline_is_an_error_that_names_the_known_ones() -> None:
    """The error for an unknown pipeline lists the pipelines that exist."""
    with pytest.raises(PipelineError, match=r"there is no pipelines/slaes\.toml\. Name one of: .*sales"):
        read_pipeline("slaes")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("partitions = 4", "partitions = 0", r"source\.partitions: .*greater than or equal to 1, got 0"),
        ('topic = "sales"', 'topic = "a b"', r"source\.topic: .*match pattern .*got 'a b'"),
        ('table = "product"', 'tabel = "product"', r"master\.table: Field required.*master\.tabel: Extra inputs"),
        ('key = ["product_id"]', 'key = ["sku"]', r"master\.key must have names of source\.fields only, got \['sku'\]"),
        (
            '"product_key", "price_cents"]',
            '"quantity"]',
            r"master\.columns must not have names of .*got \['quantity'\]",
        ),
        ('"price_cents", "sold_at"]', '"prize", "sold_at"]', r"enriched\.columns must have names of .*got \['prize'\]"),
        (
            'quantity = "uint32"',
            'quantity = "number"',
            r"fields\.quantity\.type: must be one of int64, .*got 'number'",
        ),
        (
            "memory_mb = 64",
            'memory_mb = 64\njoin = "hashjoin"',
            r"join: Input should be 'auto', 'chybridjoin', 'hybridjoin', .*'meshjoin'.*'inlj', got 'hashjoin'",
        ),
        ("memory_mb = 64", 'memory_mb = 64\nbatch_seconds = 1\njoin = "inlj"', r"batch_seconds needs .*got 'inlj'"),
        ("memory_mb = 64", "memory_mb = 1", r"memory_mb: .*greater than or equal to 8, got 1"),
        (
            "memory_mb = 64",
            "memory_mb = 64\nbatch_seconds = 0",
            r"batch_seconds: .*greater than or equal to 0\.1, got 0",
        ),
        ('name = "changed"', "name = changed", r"pipelines/changed\.toml must be TOML"),
        ('name = "changed"', "", r"changed\.toml: name: Field required\. Correct"),
        ('name = "changed"', 'name = "sales"', r"name must be that of the file, 'changed', got 'sales'"),
        ('name = "changed"', f'name = "{"x" * 55}"', r"name: .*at most 54 characters"),
        ('table = "product"', f'table = "{"x" * 51}"', r"master\.table: .*at most 50 characters"),
        ('topic = "sales.enriched"', 'topic = ".."', r"enriched\.topic: .* match pattern .*, got '\.\.'"),
        ('topic = "sales.enriched"', f'topic = "{"x" * 250}"', r"enriched\.topic: .*at most 249 characters"),
        ("memory_mb = 64", 'memory_mb = "64"', r"memory_mb: .*valid integer, got '64'"),
        ("memory_mb = 64", "memory_mb = 999999999", r"memory_mb: .*less than or equal to 1048576, got 999999999"),
        ('name = "changed"', 'name = "product"', r"must not be master\.table, .* got 'product'"),
        ('quantity = "uint32"', 'quantity = "uint32"\nsource = "int64"', r"must not have the names .*got \['source'\]"),
        ('key = ["product_id"]', 'key = ["weight"]', r"master\.key must not have .*'position', .*got \['weight'\]"),
        (
            '"price_cents"]\nch',
            '"access_rank"]\nch',
            r"master\.key, columns and changed must not have the name 'access_rank'",
        ),
        (
            'quantity = "uint32"',
            'quantity = "uint32"\n' + MANY,
            r"paths of all fields must have at most 63 .*, got 65",
        ),
        ('topic = "sales.enriched"', 'topic = "sales"', r"enriched\.topic must not be source\.topic, got 'sales'"),
        (
            'key = ["product_id"]',
            'key = ["product_id", "product_id"]',
            r"master\.key must have .*\['product_id'\] more",
        ),
        ('"price_cents"]\nch', '"price_cents", "price_cents"]\nch', r"master\.columns must .*\['price_cents'\] more"),
        ('"store_id", "qu', '"store_id", "store_id", "qu', r"enriched\.columns must .*\['store_id'\] more"),
        ('described_by = "product_key"', 'described_by = "store_id"', r"one of \['product_key', .*got 'store_id'"),
        ('price = "price', 'sold_at = "price', r"enriched\.computed must not have names .*, got \['sold_at'\]"),
        ('"price_cents / 100"', '"5 + 1"', r"enriched\.computed\.price must be arithmetic .*got '5 \+ 1'"),
        ('"price_cents / 100"', '"price_cents * 1e3"', r"must be arithmetic .*got 'price_cents \* 1e3'"),
        ('"price_cents / 100"', '"price_cents * 1_000"', r"must be arithmetic .*got 'price_cents \* 1_000'"),
        (
            '"price_cents / 100"',
            '"price_cents * 9223372036854775808"',
            r"at most 18 digits\) .*got 'price_cents \* 9223372036854775808'",
        ),
        ('"price_cents / 100"', '"event_id * 2"', r"on product_key, .*got 'event_id \* 2'"),
    ],
)
def test_a_wrong_field_is_named_with_its_rule_and_value(tmp_path: Path, old: str, new: str, says: str) -> None:
    """The error for a wrong field states file, field, rule and value."""
    assert old in SALES
    folder = written(tmp_path, SALES.replace(old, new))
    with pytest.raises(PipelineError, match=says) as caught:
        read_pipeline("changed", folder)
    assert "pipelines/changed.toml" in str(caught.value)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """A file that begins with a byte order mark, as some editors write, is read."""
    folder = written(tmp_path, SALES)
    (folder / "changed.toml").write_text(SALES, "utf-8-sig")
    assert read_pipeline("changed", folder).name == "changed"


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    """A file in another encoding than UTF-8, for example Latin-1, is an error."""
    folder = written(tmp_path, SALES)
    (folder / "changed.toml").write_bytes(SALES.encode() + "# caf\u00e9\n".encode("latin-1"))
    with pytest.raises(PipelineError, match=r"^pipelines/changed\.toml must be UTF-8: .*0xe9"):
        read_pipeline("changed", folder)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "memory_mb = 8" + "0" * 5000,
        SALES.replace('"price_cents / 100"', '"quantity' + " + quantity" * 100_000 + '"'),
        SALES.replace('"price_cents / 100"', '"' + "-" * 100_000 + 'price_cents"'),
    ],
    ids=["nested lists", "a number of 5,001 digits", "a long sum", "many signs"],
)
def test_a_file_beyond_pythons_limits_is_an_error_of_this_file(tmp_path: Path, text: str) -> None:
    """Nesting and numbers beyond Python's limits are an error of this file, so other files can still be read."""
    folder = written(tmp_path, text)
    with pytest.raises(PipelineError, match=r"changed\.toml must not have numbers or nesting beyond Python's limits"):
        read_pipeline("changed", folder)
