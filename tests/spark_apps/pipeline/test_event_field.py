"""What a pipeline's file may say about a field, and the error for what it may not."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from foundation.errors import PipelineError
from foundation.settings import ROOT
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.event_field import EventField
from spark_apps.pipeline.json_path import steps_of, tree_of

if TYPE_CHECKING:
    from pathlib import Path

SALES = (ROOT / "pipelines" / "sales.toml").read_text()
LINE = 'quantity = "uint32"'


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$.a", ("a",)),
        ("$.line.items[0].product-id", ("line", "items", 0, "product-id")),
        ("$['a b']['c.d'][12][0]", ("a b", "c.d", 12, 0)),
        (r'$["it\"s"]["\u00e4"]', ('it"s', "ä")),
        ("$.größe", ("größe",)),
        ("$['']", ("",)),
    ],
)
def test_a_path_is_names_and_indices(path: str, steps: tuple[str | int, ...]) -> None:
    """A path has plain names, quoted names of any spelling, and indices."""
    assert steps_of(path) == steps


@pytest.mark.parametrize(
    "path",
    [
        "", "$", "a", ".a", "$a", "$.", "$..a", "$.a.", "$.*", "$[*]", "$[-1]", "$[01]", "$[1:2]", "$[a]", "$.a b",
        "$['a]", '$["\\x"]', '$["\\ud800"]', "$.a[?(@.b)]", "$['a','b']", "$[1000000]", "$.a\n",
    ],
)  # fmt: skip
def test_other_paths_are_errors(path: str) -> None:
    """What is no such path is an error, also what the whole of JSONPath would take."""
    with pytest.raises(ValueError, match=r"must be \$ and then \.name"):
        steps_of(path)


def test_paths_that_exclude_each_other_are_errors() -> None:
    """Two fields at one place, one inside the other, or an object that is an array as well, are errors with names."""
    assert tree_of({"a": ("x", "y"), "b": ("x", "z")}) == {"x": {"y": "a", "z": "b"}}
    for other in (("x", "y"), ("x",), ("x", "y", "z")):
        with pytest.raises(ValueError, match=r"no field may be, or be in, .*got 'b' and 'a'"):
            tree_of({"a": ("x", "y"), "b": other})
    with pytest.raises(ValueError, match="same object or array, got 'b' with 0 where 'a' has 'y'"):
        tree_of({"a": ("x", "y"), "b": ("x", 0)})


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ('"decimal"', r"quantity\.type: must be one of int64, .*decimal\(p, s\).*, got 'decimal'"),
        ('"decimal(39, 2)"', r"quantity\.type: decimal\(p, s\) must have p of 1 to 38 .*, got 'decimal\(39, 2\)'"),
        ('"decimal(2, 3)"', r"decimal\(p, s\) must have p of 1 to 38 .*, got 'decimal\(2, 3\)'"),
        ("5", r"quantity: .*got 5"),
        ("{ nullable = true }", r"quantity\.type: Field required"),
        ('{ type = "int64", optional = true }', r"quantity\.optional: Extra inputs"),
        ('{ type = "int64", nullable = true, default = 1 }', r"quantity: a field with a default .*, got 1\."),
        ('{ type = "int64", default = "x" }', r"quantity: default must be a whole number of .*, got 'x'\."),
        ('{ type = "int32", default = 2147483648 }', r"quantity: default must be a whole number .*, got 2147483648\."),
        ('{ type = "boolean", default = 1 }', r"quantity: default must be true or false, got 1\."),
        ('{ type = "json", default = "{" }', r"quantity: default .*, got '\{'\."),
        ('{ type = "int64", path = "$..x" }', r"quantity\.path: must be \$ and then .*, got '\$\.\.x'\."),
        ('{ type = "int64", path = "$.store_id" }', r"fields: no field may be, .*got 'store_id' and 'quantity'\."),
        ('{ type = "timestamp", zone = "Berlin" }', r"quantity\.zone: must be a time zone like .*, got 'Berlin'\."),
        ('{ type = "timestamp", zone = "../etc" }', r"quantity\.zone: must be a time zone like .*, got '\.\./etc'\."),
        ('{ type = "date", zone = "UTC" }', r"quantity: zone and unit are for the type timestamp, got 'date'\."),
        ('{ type = "timestamp", zone = "UTC", unit = "s" }', r"quantity: zone is for .*got 'UTC' and 's'\."),
        ('{ type = "timestamp", unit = "us" }', r"quantity\.unit: .*'s' or 'ms', got 'us'\."),
        ('{ type = "int64", from = "offset" }', r"quantity\.from: .*got 'offset'\."),
        ('{ type = "int64", from = "key", path = "$.x" }', r"quantity: path and from exclude .* and 'key'\."),
        ('{ type = "json", from = "key" }', r"quantity: a key or header must be one of .*, got 'json'\."),
        ('{ type = "int64", from = "timestamp" }', r"quantity: from = 'timestamp' needs .*'int64'\."),
        ('{ type = "string", quoted = true }', r"quantity: quoted is for numbers, got 'string'\."),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_with_its_rule_and_value(tmp_path: Path, said: str, rule: str) -> None:
    """The error for what a file says about a field states field, rule and value once."""
    (tmp_path / "sales.toml").write_text(SALES.replace(LINE, f"quantity = {said}"))
    with pytest.raises(PipelineError, match=rule) as caught:
        read_pipeline("sales", tmp_path)
    assert "Value error" not in str(caught.value)


def test_a_key_must_be_of_a_type_that_can_be_counted(tmp_path: Path) -> None:
    """A key that the estimate could not count is an error when the file is read."""
    (tmp_path / "sales.toml").write_text(SALES.replace('product_id = "int64"', 'product_id = "float64"'))
    with pytest.raises(
        PipelineError, match=r"master\.key must have fields of the types .*got \{'product_id': 'float64'\}"
    ):
        read_pipeline("sales", tmp_path)


def test_the_type_alone_is_a_whole_field() -> None:
    """A type alone says what a table with that type says."""
    assert EventField.model_validate("uuid") == EventField(type="uuid")
    time = EventField(type="timestamp", default="2026-01-02T03:04:05Z")
    assert time.default_value() == datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - as the warehouse has it
