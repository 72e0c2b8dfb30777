"""The state's folders and the launch of Spark are defined in one place each, the foundation."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from foundation import spark_launch
from foundation.settings import ROOT
from foundation.state import StateFolders

ROOMS = ("benchmarks", "dags", "foundation", "generator", "plugins", "quality", "services", "spark_apps")
FILES = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]


def files_with(text: str) -> list[str]:
    """Return the files that contain a string literal with exactly this text."""
    found = []
    for file in FILES:
        tree = ast.parse(file.read_text())
        if any(isinstance(node, ast.Constant) and node.value == text for node in ast.walk(tree)):
            found.append(str(file.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("folder", ["snapshots", "checkpoints"])
def test_the_folders_of_the_state_are_spelled_once(folder: str) -> None:
    """Only foundation/state.py spells the names of the state's folders."""
    assert files_with(folder) == ["foundation/state.py"]


@pytest.mark.parametrize("variable", ["PYSPARK_PYTHON", "SPARK_LOCAL_IP"])
def test_the_environment_of_spark_is_spelled_once(variable: str) -> None:
    """Only foundation/spark_launch.py spells Spark's environment; tasks, tests and the installer call it."""
    assert files_with(variable) == ["foundation/spark_launch.py"]


def test_each_pipeline_has_folders_of_its_own() -> None:
    """Each pipeline has its own folders below the state folder."""
    folders = StateFolders(Path("/state"))
    of = (folders.snapshots, folders.checkpoints, folders.shed)
    paths = [folder(name) for folder in of for name in ("one", "other")]
    assert len({*paths}) == len(paths)
    assert all(path.is_relative_to("/state") for path in paths)
    assert folders.snapshots("one").parent == folders.all_snapshots


def test_a_launch_names_program_jars_and_options(tmp_path: Path) -> None:
    """The command line has spark-submit's options, then the program, then the program's arguments."""
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "connector.jar").touch()
    command = spark_launch.submit(
        Path("program.py"), "--events", 5, master="local[2]", jars=tmp_path, more_jars=(Path("more.jar"),), memory="2g"
    )
    assert Path(command[0]).name == "spark-submit"
    assert command[-3:] == ["program.py", "--events", "5"]
    assert command[command.index("--jars") + 1] == f"{tmp_path / 'spark' / 'connector.jar'},more.jar"
    assert command[command.index("--driver-memory") + 1] == "2g"
    assert spark_launch.QUICK_START in spark_launch.java_options(tmp_path, short=True)
    assert spark_launch.QUICK_START not in spark_launch.java_options(tmp_path)
