"""Tasks that run another Dag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import DagIsPaused, TriggerDagRunOperator
from airflow.sdk.exceptions import AirflowException

from foundation.errors import EndedError, GaveUpError
from plugins.one_line import RETRY_POLICY, one_line

if TYPE_CHECKING:
    from airflow.sdk import Context


class RunDagOperator(TriggerDagRunOperator):
    """Runs the Dag of the same name to its end, without a worker's slot.

    Args:
        task_id: the name of both.
        wait: wait for the end of the run.
        **kwargs: Airflow's own.
    """

    def __init__(self, *, task_id: str, wait: bool = True, **kwargs: Any) -> None:
        super().__init__(
            task_id=task_id,
            **{
                "trigger_dag_id": task_id,
                "wait_for_completion": wait,
                "deferrable": wait,
                "fail_when_dag_is_paused": True,
                "poke_interval": 5,
                "retries": 2 if wait else 0,
                "retry_delay": 5,
                "retry_policy": RETRY_POLICY,
                **kwargs,
            },
        )

    def execute(self, context: Context) -> None:
        """Trigger the run."""
        with one_line():
            try:
                super().execute(context)
            except DagIsPaused:
                raise GaveUpError(
                    f"Dag {self.trigger_dag_id} is paused, so its run would wait for ever",
                    "Unpause it, then run this Dag again.",
                ) from None

    def execute_complete(self, context: Context, event: tuple[str, dict[str, Any]]) -> None:
        """Fail with one line if the run has failed."""
        with one_line():
            try:
                super().execute_complete(context, event)
            except AirflowException:
                raise EndedError(
                    f"Dag {self.trigger_dag_id} has failed, run {self.trigger_run_id}",
                    "The log of its failed task says why.",
                ) from None
