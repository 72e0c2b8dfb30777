"""The factory makes the same Dags for each valid file, and names each broken one."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from airflow.dag_processing.dagbag import DagBag

from foundation.settings import ROOT, settings
from spark_apps.pipeline.dags import Job, dag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RIDES = (ROOT / "tests" / "pipelines" / "rides.toml").read_text()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Return a function that writes a pipeline's file into a folder of this test: its name, and memory_mb."""

    def write(name: str, memory: str = "8") -> Path:
        file = tmp_path / f"{name}.toml"
        file.write_text(RIDES.replace('"rides"', f'"{name}"', 1).replace("memory_mb = 8", f"memory_mb = {memory}"))
        return file

    monkeypatch.setenv("FRESHET_PIPELINES", str(tmp_path))
    settings.cache_clear()
    yield write
    settings.cache_clear()


def dags_of(*pipelines: str) -> set[str]:
    """Return the ids of the pipelines' Dags."""
    return {dag_of(job, name) for name in pipelines for job in get_args(Job)}


def test_each_file_has_its_dags_with_its_own_name_in_runbook_and_tags(write: Callable[..., Path]) -> None:
    """Two files have the same Dags, each with the pipeline's name in its id, its tags and its runbook."""
    write("rides")
    write("walks")
    bag = DagBag(ROOT / "dags" / "pipelines.py")
    assert bag.dags.keys() == dags_of("rides", "walks")
    for name, dag in bag.dags.items():
        pipeline = name.partition(".")[0]
        assert dag.tags == {"freshet", pipeline}
        assert "<pipeline>" not in (dag.doc_md or "")
        assert {task.pipeline for task in dag.tasks if hasattr(task, "pipeline")} <= {pipeline}
    assert "the Dag walks.stop stops it" in (bag.dags["walks.enrich"].doc_md or "")


def test_broken_files_are_one_import_error_beside_the_dags_of_the_others(write: Callable[..., Path]) -> None:
    """Each broken file is named with its rule in an import error of another Dag file, which has no Dags."""
    write("rides")
    write("low", memory="3")
    write("not_a_number", memory='"much"')
    write("other_name").rename(write("renamed"))
    write("no_toml").write_text("name = ")
    folder = write("rides").parent
    (folder / "folder.toml").mkdir()
    (folder / "unreadable.toml").symlink_to("/proc/self/mem")  # also for root
    bag = DagBag(ROOT / "dags" / "pipelines.py")
    assert bag.import_errors == {}
    assert bag.dags.keys() == dags_of("rides")
    broken = DagBag(ROOT / "dags" / "broken_pipelines.py")
    assert broken.dags == {}
    ((file, error),) = broken.import_errors.items()
    assert file.endswith("broken_pipelines.py")
    line = error.strip().splitlines()[-1]
    for said in (
        "low.toml: memory_mb: Input should be greater than or equal to 8, got 3",
        "not_a_number.toml: memory_mb: Input should be a valid integer, got 'much'",
        "renamed.toml: name must be that of the file, 'renamed', got 'other_name'",
        "no_toml.toml must be TOML",
        "Correct the file",
        "Rename the file or the pipeline.",
        "folder.toml",
        "unreadable.toml must be readable: Input/output error",
    ):
        assert said in line
    assert "rides.toml" not in line


def test_without_a_broken_file_there_is_no_import_error(write: Callable[..., Path]) -> None:
    """When all files are valid, the Dag file that names broken ones is imported without an error."""
    write("rides")
    assert DagBag(ROOT / "dags" / "broken_pipelines.py").import_errors == {}
