"""The docs are true: links resolve, paths exist, indexes are complete, and examples are valid."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

from foundation.settings import ROOT
from spark_apps.enriching.messages import messages
from spark_apps.events.reader import EventReader
from spark_apps.pipeline.definition import JoinName, Pipeline
from spark_apps.pipeline.event_field import EventField, FieldType

DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"
BESIDE_THE_CODE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = sorted([*DOCS.rglob("*.md"), *(ROOT / name for name in BESIDE_THE_CODE)])
NOT_OURS = {".git", ".freshet", "__pycache__"}
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
OF_A_FILE = (".py", ".toml", ".yml", ".yaml", ".sql", ".md", ".lock")


def files() -> list[str]:
    """Return every file of the repository, by its path from the root."""
    found = []
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in NOT_OURS]
        found += [Path(folder, name).relative_to(ROOT).as_posix() for name in names]
    return found


FILES = files()
TOP = {path.partition("/")[0] for path in FILES if "/" in path}


def prose(page: Path) -> str:
    """Return the page's text without its blocks of code."""
    return FENCED.sub("", page.read_text())


def named(page: Path) -> set[str]:
    """Return the paths that a page names in backticks."""
    spans = set(re.findall(r"`([^`\n]+)`", prose(page)))
    return {span for span in spans if PATH.fullmatch(span) and (span.endswith(OF_A_FILE) or span.split("/")[0] in TOP)}


def is_there(path: str) -> bool:
    """Tell whether a path exists, either from the root or as the end of a file's path, as `joins/meshjoin.py`."""
    return (ROOT / path).exists() or any(file.endswith("/" + path) for file in FILES)


def shown(page: Path) -> str:
    """Return the page's path, as pytest shows it in a test's name."""
    return page.relative_to(ROOT).as_posix()


def links(page: Path) -> set[str]:
    """Return the targets of a page's relative links, without their anchors."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return {target.partition("#")[0] for target in targets if "://" not in target and not target.startswith("#")}


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_each_relative_link_resolves(page: Path) -> None:
    """Each relative link of a page leads to a file or folder that exists."""
    assert [target for target in links(page) if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_each_path_that_a_page_names_exists(page: Path) -> None:
    """Each path that a page names in backticks exists, so renaming a file requires a change of the docs."""
    assert sorted(path for path in named(page) if not is_there(path)) == []


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_each_make_command_in_the_docs_is_a_target(page: Path) -> None:
    """Each `make` command on a page is a target of the Makefile."""
    for target in sorted(set(re.findall(r"`make ([a-z]+)\b", prose(page)))):
        subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=True)


def test_the_index_lists_every_page() -> None:
    """The index of the docs links to every page."""
    listed = {(DOCS / target).resolve() for target in links(DOCS / "README.md")}
    assert set(DOCS.glob("*.md")) - {DOCS / "README.md"} <= listed


def test_the_index_of_decisions_lists_every_decision() -> None:
    """The index of decisions lists each decision exactly once."""
    listed = re.findall(r"^\d+\. \[.+\]\((.+)\)$", (DECISIONS / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in DECISIONS.glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("page", sorted(set(DECISIONS.glob("*.md")) - {DECISIONS / "README.md"}), ids=shown)
def test_a_decision_says_what_why_what_else_and_until_when(page: Path) -> None:
    """A decision is one short page with the reasons, the rejected alternatives, and what would change it."""
    lines = page.read_text().splitlines()
    assert [line for line in lines if line.startswith("#")][1:] == [
        "## Why",
        "## Rejected",
        "## What would change our mind",
    ]
    assert len(lines) <= 40


def test_the_glossary_has_each_word_once_in_alphabetical_order() -> None:
    """The glossary lists each word exactly once, in alphabetical order."""
    words = re.findall(r"^\| ([a-z][\w, -]+?) \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)[1:]
    assert words == sorted(set(words))


def test_the_example_of_a_pipeline_is_valid() -> None:
    """The example of a pipeline's file is valid, because authors start from a copy of it."""
    example, _ = _blocks("toml")
    assert Pipeline.model_validate(tomllib.loads(example)).name == "sales"


def test_the_example_of_an_event_is_read_as_the_page_says() -> None:
    """The example of an event, read by the fields beside it, becomes the message that the table shows."""
    _, said = _blocks("toml")
    (event,) = _blocks("json")
    fields = {name: EventField.model_validate(each) for name, each in tomllib.loads(said)["source"]["fields"].items()}
    one = (pa.array([0], pa.int32()), pa.array([0], pa.int64()), pa.array([event.encode()]))
    read = EventReader(fields, ["product_id"]).read(*one)
    made = messages(1, ["product_id"], list(fields), pa.Table.from_batches([read.events]), ["colours"])
    section = (DOCS / "pipelines.md").read_text().partition("| column | in the warehouse | in the enriched topic |")[2]
    shown = re.findall(r"^\| `(\w+)` \|.*\| `(.+)` \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert json.loads(made["value"][0].as_py()) == {name: json.loads(value) for name, value in shown}


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / "pipelines.md").read_text(), re.MULTILINE | re.DOTALL)


def test_every_type_of_field_and_every_join_is_named() -> None:
    """The page of pipelines lists exactly the field types and the joins that the code supports."""
    text = (DOCS / "pipelines.md").read_text()
    types = text.partition("## Types of fields")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)[`(]", types, re.MULTILINE)) == set(get_args(FieldType))
    joins = text.partition("## Joins")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", joins)) == set(get_args(JoinName))
