"""The enriched topic has the values that the analysts' view computes in SQL."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from spark_apps.pipeline.expressions import compute_expression

COLUMNS = {
    "quantity": pa.array([7, 4_294_967_295, None], pa.uint32()),
    "cents": pa.array([12, 4_294_967_295, 5], pa.uint32()),
    "long": pa.array([-5, 9_223_372_036_854_775_807, 1], pa.int64()),
    "money": pa.array([Decimal("1.25"), Decimal("99999999.99"), None], pa.decimal128(38, 2)),
}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("quantity * cents", [84, 18446744065119617025, None]),
        ("quantity - cents", [-5, 0, None]),
        ("long * cents", [-60, 9_223_372_036_854_775_807 * 4_294_967_295, 5]),
        ("cents / 8", [1.5, 4_294_967_295 / 8, 0.625]),
        ("(quantity + 1) * 2", [16, 8_589_934_592, None]),
        ("quantity * money", [8.75, 4_294_967_295 * 99999999.99, None]),
        ("cents * 0.5", [6.0, 2147483647.5, 2.5]),
    ],
)
def test_no_number_wraps_around(text: str, values: list[float | None]) -> None:
    """Results equal SQL's to 15 digits, also for unsigned, decimal and null values and beyond 64 bits."""
    computed = compute_expression(text, COLUMNS)
    assert [value.as_py() is None for value in computed] == [value is None for value in values]
    known = [value for value in values if value is not None]
    assert computed.drop_null().to_pylist() == pytest.approx(known, rel=1e-14)
