"""The page's buttons: which Dag each of them triggers, what will happen, and why one cannot be pressed now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from fastapi import HTTPException
from sqlalchemy import select

from plugins.page.access import MAY_NOT
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.definition import pipeline_names

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from sqlalchemy.orm import Session

    from spark_apps.pipeline.dags import Job


@dataclass(frozen=True)
class Button:
    """One button.

    Attributes:
        label: what is on it.
        job: of the Dag that it triggers.
        happens: what will happen, for the question before it does.
    """

    label: str
    job: Job
    happens: str

    def dag_of(self, pipeline: str) -> str:
        """Return the id of a pipeline's Dag."""
        return dag_of(self.job, pipeline)


BUTTONS = (
    Button(
        "Start",
        "enrich",
        "The application starts and goes on where it stopped. Its first batch takes up to half a minute. "
        "If it runs already, nothing changes.",
    ),
    Button(
        "Stop",
        "stop",
        "The application ends after the batch that it is in, and stays stopped until somebody starts it. "
        "No event is lost: they wait in the topic.",
    ),
    Button(
        "Refresh order",
        "refresh",
        "A Spark job counts the keys of the last hour, orders the master data by them, checks the result and publishes "
        "it. The stream goes on and takes it over between two batches.",
    ),
    Button(
        "Check quality",
        "check",
        "Great Expectations checks the newest enriched rows. The stream goes on. A failed check turns its Dag red.",
    ),
)


def for_user(user: BaseUser, pipelines: list[str]) -> dict[str, list[dict[str, object]]]:
    """Return each pipeline's buttons, and for each why this user cannot press it now; an empty text if he can."""
    wanted = {(name, button): button.dag_of(name) for name in pipelines for button in BUTTONS}
    with create_session() as session:
        paused = _paused(session, *wanted.values())
    found: dict[str, list[dict[str, object]]] = {name: [] for name in pipelines}
    for (name, button), dag_id in wanted.items():
        why_not = _obstacle(dag_id, paused) or ("" if _may_run(user, dag_id) else MAY_NOT)
        found[name].append({"label": button.label, "dag": dag_id, "happens": button.happens, "why_not": why_not})
    return found


def paused_start(pipeline: str) -> str:
    """Return the Dag that keeps a pipeline's stream running, if it is paused; else an empty text."""
    start = BUTTONS[0].dag_of(pipeline)
    with create_session() as session:
        return start if _paused(session, start).get(start) else ""


def press(dag_id: str, user: str) -> str:
    """Trigger a Dag that has a button, and return the run's id."""
    if dag_id not in {button.dag_of(name) for button in BUTTONS for name in pipeline_names()}:
        raise HTTPException(404, f"{dag_id} has no button on this page. Trigger it in Airflow.")
    with create_session() as session:
        if obstacle := _obstacle(dag_id, _paused(session, dag_id)):
            raise HTTPException(409, obstacle)
        run = trigger_dag(dag_id, triggered_by=DagRunTriggeredByType.UI, triggering_user_name=user, session=session)
        assert run is not None  # noqa: S101  # the Dag exists
        return str(run.run_id)


def _paused(session: Session, *dag_ids: str) -> dict[str, bool]:
    """Return which of these Dags are paused; Dags that do not exist are left out."""
    query = select(DagModel.dag_id, DagModel.is_paused).where(DagModel.dag_id.in_(dag_ids), ~DagModel.is_stale)
    return {row.dag_id: bool(row.is_paused) for row in session.execute(query)}


def _obstacle(dag_id: str, paused: dict[str, bool]) -> str:
    if dag_id not in paused:
        return f"There is no Dag {dag_id}: its file is new, read within 30 s, or broken, an import error in Airflow."
    return f"The Dag {dag_id} is paused: a run would wait. Unpause it first." if paused[dag_id] else ""


def _may_run(user: BaseUser, dag_id: str) -> bool:
    return get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag_id), user=user
    )
