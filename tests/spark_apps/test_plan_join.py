"""A pipeline's plan is made from its snapshot, its memory and the skew that its estimate has counted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from semistream.planning import Skew

from foundation.errors import SnapshotError
from spark_apps.master.frequency import Estimate, store_estimate
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.plan_join import plan
from tests.spark_apps.conftest import ROWS, Warehouse, refreshed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration
SALES = read_pipeline("sales").model_copy(update={"memory_mb": 16})


def exponent_in(text: str) -> float:
    """Return the exponent that a plan names."""
    found = re.search(r"Zipf's exponent ([\d.]+)\. Memory: 16,777,216 bytes", text)
    assert found, text
    return float(found[1])


def test_it_takes_the_skew_that_was_counted(products: Warehouse, folder: Path) -> None:
    """With an estimate of exponent 1.3 the plan is made for 1.3; before there is one, for 1, and it says so."""
    refreshed(products, folder)
    before = plan(products.login, SALES, folder, "ssd")
    assert exponent_in(before) == 1
    assert "The exponent is not counted yet, so taken for 1." in before
    weights = Skew(ROWS, 1.3).shares(0, ROWS) * 1e6
    counted = pa.table({"product_id": np.arange(1, ROWS + 1), "weight": weights})
    store_estimate(products.login, SALES.master, Estimate(1, 1e6, counted))
    after = plan(products.login, SALES, folder, "ssd")
    assert exponent_in(after) == pytest.approx(1.3, abs=0.01)
    assert "The exponent is counted by the estimate. sales uses chybridjoin" in after
    assert after.startswith(f"R: {ROWS:,} rows of ")
    assert re.search(r"^CHYBRIDJOIN +[\d,]+ ", after, re.MULTILINE)


def test_without_a_snapshot_it_says_what_to_run(products: Warehouse, folder: Path) -> None:
    """Before the first refresh there is nothing to plan with: the error names the Dag that publishes a snapshot."""
    with pytest.raises(SnapshotError, match="Run the Dag refresh_master_order"):
        plan(products.login, SALES, folder, "ssd")
