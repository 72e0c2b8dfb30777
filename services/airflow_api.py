"""A small client for Airflow's REST API: log in, trigger a Dag, read its runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import httpx

from services.airflow import ADMIN

if TYPE_CHECKING:
    from foundation.settings import Settings

TIMEOUT_SECONDS = 30
FINISHED = ("success", "failed")


@dataclass(frozen=True)
class Run:
    """One run of a Dag, as it was at the request."""

    dag: str
    run_id: str
    state: str
    tasks: dict[str, str]

    def unfinished(self) -> str | None:
        """Return None when the run has ended, else the names of its active tasks, or its state if no task is active."""
        if self.state in FINISHED:
            return None
        active = [
            name for name, state in self.tasks.items() if state in ("queued", "running", "deferred", "up_for_retry")
        ]
        return ", ".join(active) or self.state

    def failed_tasks(self) -> list[str]:
        """Return the names of the tasks that failed."""
        return [name for name, state in self.tasks.items() if state == "failed"]


class AirflowApi:
    """Airflow's API, logged in as the admin."""

    def __init__(self, config: Settings) -> None:
        self._http = httpx.Client(base_url=config.airflow_api, timeout=TIMEOUT_SECONDS)
        login = {"username": ADMIN, "password": config.secret("airflow_password")}
        token = self._answer(self._http.post("/auth/token", json=login))["access_token"]
        self._http.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def dags(self) -> set[str]:
        """Return the ids of all Dags that can run."""
        return set(self._dags())

    def paused(self) -> list[str]:
        """Return the ids of the Dags that are paused."""
        return self._dags(paused=True)

    def import_errors(self) -> list[str]:
        """Return one line for each file in dags/ that Airflow could not import: the file and the reason."""
        listed = self._answer(self._http.get("/api/v2/importErrors"))
        return [
            f"{error['filename']}: {error['stack_trace'].strip().splitlines()[-1]}" for error in listed["import_errors"]
        ]

    def trigger(self, dag: str, conf: dict[str, object] | None = None, run_id: str | None = None) -> str:
        """Start a run, unless a run with this id exists, and return the run's id."""
        body = {"logical_date": None, "conf": conf or {}, **({"dag_run_id": run_id} if run_id else {})}
        answer = self._http.post(f"/api/v2/dags/{dag}/dagRuns", json=body)
        if run_id and answer.status_code == httpx.codes.CONFLICT:
            return run_id
        return str(self._answer(answer)["dag_run_id"])

    def fail_run(self, dag: str, run_id: str) -> None:
        """Mark a run as failed, which ends its tasks."""
        self._answer(self._http.patch(f"/api/v2/dags/{dag}/dagRuns/{run_id}", json={"state": "failed"}))

    def run(self, dag: str, run_id: str) -> Run:
        """Return a run with the states of its tasks."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run_id}"
        state = self._answer(self._http.get(path))["state"]
        listed = self._answer(self._http.get(f"{path}/taskInstances"))["task_instances"]
        return Run(dag, run_id, state, {task["task_id"]: task["state"] or "waiting" for task in listed})

    def runs(self, dag: str, *states: str) -> list[str]:
        """Return the ids of a Dag's runs that are in one of these states."""
        listed = self._answer(self._http.get(f"/api/v2/dags/{dag}/dagRuns", params={"state": list(states)}))
        return [run["dag_run_id"] for run in listed["dag_runs"]]

    def get(self, path: str) -> Any:  # noqa: ANN401  # JSON
        """Return the answer of a plugin's route."""
        return self._answer(self._http.get(path))

    def triggered_by(self, dag: str, run_id: str) -> str:
        """Return the user who triggered a run."""
        return str(self._answer(self._http.get(f"/api/v2/dags/{dag}/dagRuns/{run_id}"))["triggering_user_name"])

    def triggered_at(self, dag: str, run_id: str) -> datetime:
        """Return when a run was triggered, in UTC without a zone, as the warehouse writes moments."""
        moment = self._answer(self._http.get(f"/api/v2/dags/{dag}/dagRuns/{run_id}"))["run_after"]
        return datetime.fromisoformat(moment).astimezone(UTC).replace(tzinfo=None)

    def pause(self, dag: str, *, paused: bool) -> None:
        """Pause a Dag, or unpause it."""
        self._answer(self._http.patch(f"/api/v2/dags/{dag}", json={"is_paused": paused}))

    def audit_log(self, dag: str) -> set[tuple[str, str]]:
        """Return the kinds of events that the audit log has for a Dag, each with its user."""
        listed = self._answer(self._http.get("/api/v2/eventLogs", params={"dag_id": dag, "limit": 100}))
        return {(event["event"], event["owner"]) for event in listed["event_logs"]}

    def task(self, run: Run, task: str) -> dict[str, Any]:
        """Return everything that Airflow shows about one task of a run."""
        path = f"/api/v2/dags/{run.dag}/dagRuns/{run.run_id}/taskInstances/{task}"
        return dict(self._answer(self._http.get(path)))

    def log(self, run: Run, task: str) -> str:
        """Return the log of a task's last try."""
        path = f"/api/v2/dags/{run.dag}/dagRuns/{run.run_id}/taskInstances/{task}"
        tries = self.task(run, task)["try_number"]
        lines = self._answer(self._http.get(f"{path}/logs/{tries}"))["content"]
        return "\n".join(str(line.get("event", line)) if isinstance(line, dict) else str(line) for line in lines)

    def _dags(self, **filters: bool) -> list[str]:
        found: list[str] = []
        while True:
            part: dict[str, int] = {"limit": 100, "offset": len(found)}  # Airflow gives 100 at most
            page = self._answer(self._http.get("/api/v2/dags", params={**filters, **part}))
            found += [dag["dag_id"] for dag in page["dags"]]
            if len(found) >= page["total_entries"]:
                return found

    @staticmethod
    def _answer(response: httpx.Response) -> Any:  # noqa: ANN401  # JSON
        if response.is_error:
            raise httpx.HTTPStatusError(
                f"{response.request.method} {response.request.url.path}: {response.status_code} {response.text}",
                request=response.request,
                response=response,
            )
        return response.json()
