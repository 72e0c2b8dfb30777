"""Dag files are thin, importing them is cheap, and every Dag tells its operator what he needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import TYPE_CHECKING, get_args

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, AssetAny, BaseSensorOperator

from foundation.settings import ROOT
from plugins.assets import asset
from plugins.freshet import FreshetPlugin
from plugins.notifiers import FailureNotifier, RecoveryNotifier
from plugins.operators.warehouse import MigrateOperator
from spark_apps.pipeline.dags import Job

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted((ROOT / "dags").glob("*.py"))
FACTORY = ROOT / "plugins" / "pipeline_dags"
JOBS = [FACTORY / f"{job}.py" for job in get_args(Job)]
DEMOS = {"demo", "deploy_generator", "load_catalogue", "stop_generator"}
HEAVY = ("pyspark", "great_expectations", "numba", "pyarrow", "pandas", "kafka")
LOGIC = (ast.For, ast.While, ast.If, ast.Try, ast.ClassDef, ast.Lambda, ast.ListComp, ast.DictComp)


@pytest.mark.parametrize("file", [*FILES, *JOBS], ids=lambda file: file.stem)
def test_a_dag_file_has_a_docstring_and_no_logic(file: Path) -> None:
    """A Dag is a list of tasks, parameters and their order, in dags/ or in a file of the factory for each job."""
    tree = ast.parse(file.read_text())
    assert ast.get_docstring(tree)
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


@pytest.fixture(scope="module")
def dags() -> dict[str, DAG]:
    """Load all Dags as Airflow does."""
    bag = DagBag(ROOT / "dags")
    assert bag.import_errors == {}
    return dict(bag.dags)


def test_every_dag_of_the_system_is_there(dags: dict[str, DAG]) -> None:
    """The demo has Dags of its own, and the factory makes each job's Dag for each file in pipelines/."""
    assert dags.keys() == DEMOS | {f"sales.{job}" for job in get_args(Job)}
    assert {dag.fileloc for name, dag in dags.items() if name not in DEMOS} == {str(ROOT / "dags" / "pipelines.py")}


def test_every_dag_has_an_owner_a_sentence_and_a_runbook(dags: dict[str, DAG]) -> None:
    """Each Dag has an owner, a description of one sentence, and a table of symptoms with what to do about each."""
    for name, dag in dags.items():
        assert {task.owner for task in dag.tasks} == {"freshet"}, name
        assert dag.description, name
        assert dag.description.endswith("."), name
        assert dag.description.count(". ") == 0, name
        lines = (dag.doc_md or "").splitlines()
        head = lines.index("| symptom | where to look | what to do |")
        rows = [line for line in lines[head + 2 :] if line]
        assert rows, name
        assert {line.count(" | ") for line in rows} == {2}, name


def test_every_task_tells_its_failure_and_its_recovery(dags: dict[str, DAG]) -> None:
    """Each task calls the notifiers when it fails and when it succeeds."""
    for dag in dags.values():
        for task in dag.tasks:
            failed, succeeded = task.on_failure_callback, task.on_success_callback
            assert isinstance(failed, list)
            assert isinstance(succeeded, list)
            assert [type(each) for each in failed] == [FailureNotifier]
            assert [type(each) for each in succeeded] == [RecoveryNotifier]


def test_no_task_holds_a_slot_while_it_waits(dags: dict[str, DAG]) -> None:
    """A sensor is rescheduled, and a task that waits for another Dag is deferred: neither holds a worker's slot."""
    tasks = [task for dag in dags.values() for task in dag.tasks]
    sensors = [task for task in tasks if isinstance(task, BaseSensorOperator)]
    triggers = [task for task in tasks if isinstance(task, TriggerDagRunOperator)]
    assert len(sensors) == 2
    assert len(triggers) == 6
    assert all(each.mode == "reschedule" or getattr(each, "deferrable", False) for each in sensors)
    assert all(each.deferrable or not each.wait_for_completion for each in triggers)


def test_a_dag_that_must_end_has_a_limit_for_each_task(dags: dict[str, DAG]) -> None:
    """Only the Dags that keep a program or stop it have tasks without a limit of time."""
    unlimited = {name for name, dag in dags.items() for task in dag.tasks if task.execution_timeout is None}
    assert unlimited == {"sales.enrich", "deploy_generator", "sales.stop", "stop_generator"}


def test_assets_connect_the_dags(dags: dict[str, DAG]) -> None:
    """Each asset is made and used by the right Dags, and a check follows new rows and new snapshots."""
    made: dict[str, set[str]] = {}
    used: dict[str, set[str]] = {}
    for name, dag in dags.items():
        for task in dag.tasks:
            for outlet in task.outlets:
                made.setdefault(outlet.name, set()).add(name)
            for inlet in task.inlets:
                used.setdefault(inlet.name, set()).add(name)
    assert made == {
        "topic of sales": {"sales.prepare", "deploy_generator"},
        "master of sales": {"sales.prepare"},
        "estimate of sales": {"sales.refresh"},
        "snapshot of sales": {"sales.refresh"},
        "enriched of sales": {"sales.enrich", "sales.announce"},
        "quality of sales": {"sales.refresh", "sales.check"},
    }
    assert used == {
        "topic of sales": {"sales.refresh", "sales.enrich"},
        "master of sales": {"sales.refresh"},
        "estimate of sales": {"sales.refresh"},
        "snapshot of sales": {"sales.enrich", "sales.check", "sales.watch"},
        "enriched of sales": {"sales.check", "sales.watch"},
        "quality of sales": {"sales.watch"},
    }
    follows = dags["sales.check"].schedule
    assert isinstance(follows, AssetAny)
    assert list(follows.objects) == [asset("enriched", "sales"), asset("snapshot", "sales")]


def test_every_number_that_a_dag_takes_is_bounded_and_described(dags: dict[str, DAG]) -> None:
    """Each parameter has a description, a least value and a largest one."""
    for dag in dags.values():
        for name in dag.params:
            param = dag.params.get_param(name)
            assert param.description, name
            assert {"minimum", "exclusiveMinimum"} & param.schema.keys(), name
            assert "maximum" in param.schema, name


def test_the_link_leads_to_the_page_and_only_from_our_tasks(dags: dict[str, DAG]) -> None:
    """The plugin's link has the page's address for a task of our Dags, and none for a task of another Dag."""
    (link,) = FreshetPlugin.global_operator_extra_links
    for dag in dags.values():
        assert all(link.get_link(task, ti_key=None).endswith("/plugin/freshet") for task in dag.tasks)
    with DAG("of_somebody_else", schedule=None):
        foreign = MigrateOperator(task_id="migrate")
    assert not link.get_link(foreign, ti_key=None)
