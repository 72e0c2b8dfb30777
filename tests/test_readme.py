"""The README is right about commands, tables and paths, and `make` alone prints help."""

from __future__ import annotations

import re
import subprocess
from typing import get_args

import pytest

from foundation.settings import PREFIX, ROOT, Settings
from spark_apps.pipeline.dags import Job, dag_of

README = (ROOT / "README.md").read_text()
ROOMS = ("foundation", "generator", "plugins", "services", "semistream/src/semistream")


def test_make_alone_prints_every_target_by_section() -> None:
    """`make` without a target prints every target by section."""
    printed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"demo", "test", "up", "down", "status", "logs", "lint", "bench", "clean"} <= set(targets)
    assert re.findall(r"^  ([a-z]+) +\S", printed, re.MULTILINE) == targets
    assert "See it run" in printed


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:^|`)make ([a-z]+)\b", README, re.MULTILINE))))
def test_each_make_command_in_the_readme_is_a_target(target: str) -> None:
    """Each `make` command in the README is a target of the Makefile."""
    subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=True)


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:[a-z_.-]+/)+[\w.-]*|[\w-]+\.(?:yml|toml|lock))`", README)))
)
def test_each_path_in_the_readme_exists(path: str) -> None:
    """Each path in the README exists, except those that the first start creates."""
    assert path.startswith(".freshet/") or (ROOT / path).exists()


def test_the_readme_lists_every_dag() -> None:
    """The README lists every Dag by the name that Airflow shows."""
    listed = set(re.findall(r"^\| `([\w.<>]+)` \|", README, re.MULTILINE))
    demos = {file.stem for file in (ROOT / "dags").glob("*.py") if "pipelines" not in file.stem}
    assert listed == demos | {dag_of(job, "<pipeline>") for job in get_args(Job)}


def test_each_room_of_the_code_is_in_the_table_of_what_to_change() -> None:
    """Each top-level folder of code is in the README's table of what to change where."""
    table = README.partition("## Where to change what")[2].partition("\n## ")[0]
    rooms = [*(ROOT / "spark_apps").glob("*/__init__.py"), *(ROOT / name / "__init__.py" for name in ROOMS)]
    assert {f"{room.parent.relative_to(ROOT)}/" for room in rooms} <= set(re.findall(r"`([\w/]+/)`", table))


def test_the_readme_leads_on() -> None:
    """The README links to the index of the docs, to the guide for contributors, and to the licence."""
    assert {"docs/README.md", "CONTRIBUTING.md", "LICENSE"} <= set(re.findall(r"\]\(([^)]+)\)", README))


def test_each_variable_in_the_readme_is_a_setting() -> None:
    """Each variable in the README is a setting with the prefix that all settings have."""
    named = {name.lower() for name in re.findall(rf"{PREFIX}([A-Z_]+)=", README)}
    assert named
    assert named <= Settings.model_fields.keys()
