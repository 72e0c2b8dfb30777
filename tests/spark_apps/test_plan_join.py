"""A pipeline's plan is made from its snapshot, its memory and the skew that its estimate has counted."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from semistream import PageFile, write_page_file
from semistream.planning import Plan, Skew, Workload, predict

from foundation.connections import Login
from foundation.errors import SnapshotError
from spark_apps.enriching.planning import Plans, planner
from spark_apps.master.frequency import Estimate, store_estimate
from spark_apps.master.publish import publish
from spark_apps.master.ranking import build_ranking
from spark_apps.master.snapshots import current
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.join_plan import JoinPlan
from spark_apps.plan_join import plan
from tests.spark_apps.conftest import ROWS, Warehouse, refreshed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration
WORKLOAD = Workload.of_the_papers(rows=100_000)
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
    assert "The exponent is counted by the estimate. Device: ssd." in after
    assert "sales joins with version 1 by chybridjoin: not planned yet" in after
    assert after.startswith(f"R: {ROWS:,} rows of ")
    assert re.search(r"^CHYBRIDJOIN +[\d,]+ ", after, re.MULTILINE)


def test_publishing_plans_and_keeps_the_plan(products: Warehouse, folder: Path) -> None:
    """The planner's choice is in the manifest, and is told line by line: the table of all joins, then the choice."""
    said: list[str] = []
    ranking = build_ranking(products.login, products.master)
    plan_it = planner(products.login, SALES, said.append)
    published = publish(products.login, products.master, ranking, folder, plan=plan_it)
    kept = current(folder)
    assert kept == published
    assert kept.plan.join == "chybridjoin"
    assert said[0].startswith(f"R: {ROWS:,} rows of ")
    assert said[-1] == f"sales joins by chybridjoin: {kept.plan.reason}"
    assert "the whole stream meets its row in memory" in kept.plan.reason
    assert plan(products.login, SALES, folder).endswith(
        f"sales joins with version 1 by chybridjoin: {kept.plan.reason}"
    )


def test_a_manifest_from_before_plans_is_joined_as_in_the_papers(products: Warehouse, folder: Path) -> None:
    """An upgrade works with the snapshots that are there."""
    manifest = refreshed(products, folder).manifest
    content = json.loads(manifest.read_text())
    del content["plan"]
    manifest.write_text(json.dumps(content))
    kept = current(folder)
    assert kept
    assert kept.plan == JoinPlan("chybridjoin", 0.15, 1, 0.0, 1.0, "page-cache")


def test_the_fastest_join_is_chosen_unless_chybridjoin_is_nearly_as_fast_or_a_batch_has_a_limit() -> None:
    """A file's own join, and what can shed, come first; then the rate."""
    rates = {"chybridjoin": 1.0, "x_hybridjoin": 1.05, "inlj": 0.1}
    for other, batch_seconds, join, chosen in (
        (1.05, None, "auto", "chybridjoin"),
        (1.5, None, "auto", "x_hybridjoin"),
        (1.5, 2.0, "auto", "chybridjoin"),
        (1.5, None, "inlj", "inlj"),
        (1.5, None, "ordered_meshjoin", "ordered_meshjoin"),
    ):
        found = {
            name: replace(predict(Plan(name, 2**22, 500), WORKLOAD), rate=rate)
            for name, rate in (rates | {"x_hybridjoin": other}).items()
        }
        plans = Plans(found, WORKLOAD, 2**22, is_counted=True, device="ssd")
        changed = SALES.model_copy(update={"join": join, "batch_seconds": batch_seconds})
        assert plans.choice(changed).join == chosen


def test_without_a_snapshot_it_says_what_to_run(products: Warehouse, folder: Path) -> None:
    """Before the first refresh there is nothing to plan with: the error names the Dag that publishes a snapshot."""
    with pytest.raises(SnapshotError, match=r"Run the Dag sales\.refresh"):
        plan(products.login, SALES, folder, "ssd")


def test_a_memory_that_is_too_small_is_said_and_an_empty_table_needs_no_plan(tmp_path: Path) -> None:
    """Publishing goes on with the papers' parameters; the start of the stream says how much memory is needed."""
    little = Plans({}, WORKLOAD, 1000, is_counted=False, device="ssd")
    assert little.as_text() == "1,000 bytes are not enough for any join of 100,000 master rows."
    assert little.choice(SALES).join == "chybridjoin"
    nothing = pa.table({"product_id": pa.array([], pa.int64())})
    write_page_file(tmp_path / "r", nothing.schema, [], ["product_id"])
    with PageFile(tmp_path / "r") as empty:
        assert planner(Login("127.0.0.1", 1, "nobody", "", None), SALES)(empty).reason == "the master table is empty"
