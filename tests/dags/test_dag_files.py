"""Dag files are thin, and importing them is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from foundation.settings import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted((ROOT / "dags").glob("*.py"))
HEAVY = ("pyspark", "great_expectations", "numba", "pyarrow", "pandas", "kafka")
LOGIC = (ast.For, ast.While, ast.If, ast.Try, ast.ClassDef, ast.Lambda, ast.ListComp, ast.DictComp)


def test_every_dag_of_the_system_is_there() -> None:
    """Each Dag of the system is defined in a file of its own."""
    assert {file.stem for file in FILES} == {
        "check_quality",
        "demo",
        "deploy_generator",
        "enrich_stream",
        "prepare_warehouse",
        "refresh_master_order",
        "stop_enrich_stream",
        "stop_generator",
        "watch_stream",
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_dag_file_has_a_docstring_and_no_logic(file: object) -> None:
    """A Dag file lists only tasks, parameters and their order, and has the docstring that Airflow shows."""
    tree = ast.parse(file.read_text())  # type: ignore[attr-defined]
    assert ast.get_docstring(tree)
    assert "doc_md=__doc__" in file.read_text()  # type: ignore[attr-defined]
    assert not [node for node in ast.walk(tree) if isinstance(node, LOGIC)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_dag_file_imports_airflow_and_plugins_only(file: Path) -> None:
    """The arrow plugins <- dags: what a Dag needs from other rooms goes through an operator."""
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    assert imported <= {"airflow", "plugins"} | sys.stdlib_module_names


def test_importing_all_dag_files_loads_nothing_heavy() -> None:
    """Importing the Dag files loads no slow package, because Airflow imports these files repeatedly."""
    names = ", ".join(f"dags.{file.stem}" for file in FILES)
    program = f"import sys, {names}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == []
