"""A pipeline's file that is wrong is told apart by file, field, rule and value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.settings import ROOT
from spark_apps.pipeline import PipelineError, load_pipeline

if TYPE_CHECKING:
    from pathlib import Path

SALES = (ROOT / "pipelines" / "sales.toml").read_text()


def written(folder: Path, text: str) -> Path:
    """Put a pipeline file `changed` into a folder of its own."""
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "changed.toml").write_text(text)
    return folder / "pipelines"


def test_the_demos_pipeline_is_valid() -> None:
    """It names the demo's topics."""
    sales = load_pipeline("sales")
    assert (sales.source.topic, sales.enriched.topic, sales.master.key) == ("sales", "sales.enriched", ["product_id"])


def test_an_unknown_pipeline_is_named_with_those_that_are_there() -> None:
    """So that a typing error is seen at once."""
    with pytest.raises(PipelineError, match=r"there is no pipelines/slaes\.toml; there are: .*sales"):
        load_pipeline("slaes")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("partitions = 4", "partitions = 0", r"source\.partitions: .*greater than or equal to 1, got 0"),
        ('topic = "sales"', 'topic = "a b"', r"source\.topic: .*match pattern .*got 'a b'"),
        ('table = "product"', 'tabel = "product"', r"master\.table: Field required.*master\.tabel: Extra inputs"),
        ('key = ["product_id"]', 'key = ["sku"]', r"master\.key must be fields of source\.fields, got \['sku'\]"),
        ('"product_key", "price_cents"]', '"quantity"]', r"must not have the name of a field .*got \['quantity'\]"),
        ('"price_cents", "sold_at"]', '"prize", "sold_at"]', r"enriched\.columns must be of .*got \['prize'\]"),
        ('quantity = "uint32"', 'quantity = "number"', r"source\.fields\.quantity: .*got 'number'"),
        (
            "memory_mb = 64",
            'memory_mb = 64\njoin = "hashjoin"',
            r"join: Input should be 'chybridjoin', 'hybridjoin', .*'meshjoin'.*'inlj', got 'hashjoin'",
        ),
        ("memory_mb = 64", 'memory_mb = 64\nbatch_seconds = 1\njoin = "inlj"', r"batch_seconds needs .*got 'inlj'"),
        ("memory_mb = 64", "memory_mb = 1", r"memory_mb: .*greater than or equal to 8, got 1"),
        (
            "memory_mb = 64",
            "memory_mb = 64\nbatch_seconds = 0",
            r"batch_seconds: .*greater than or equal to 0\.1, got 0",
        ),
        ('name = "sales"', "name = sales", r"pipelines/changed\.toml is not TOML"),
    ],
)
def test_a_wrong_field_is_named_with_its_rule_and_value(tmp_path: Path, old: str, new: str, says: str) -> None:
    """And the file that it is in."""
    assert old in SALES
    folder = written(tmp_path, SALES.replace(old, new))
    with pytest.raises(PipelineError, match=says) as caught:
        load_pipeline("changed", folder)
    assert "pipelines/changed.toml" in str(caught.value)
