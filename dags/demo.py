"""Run the other Dags in order: prepare the warehouse, start the generator, order the master data, start the stream.

Then wait for enriched rows and check them. The generator and the stream keep running after this Dag has ended; the Dag
stop_enrich_stream stops the stream.
"""

from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param

from plugins.sensors.stream import EnrichedRowsSensor, TopicEventsSensor


def run(dag_id: str, **options: Any) -> TriggerDagRunOperator:
    """Return an Airflow task that runs another Dag to its end."""
    return TriggerDagRunOperator(
        task_id=dag_id,
        trigger_dag_id=dag_id,
        wait_for_completion=True,
        deferrable=True,
        poke_interval=5,
        retries=2,
        **options,
    )


with DAG(
    "demo",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    max_active_runs=1,
    render_template_as_native_obj=True,  # the other Dags get params as numbers, not as text
    params={
        "products": Param(10_000, type="integer", minimum=1, description="Products to create if the table is empty."),
        "rate": Param(500, type="integer", minimum=1, description="Mean number of events per second."),
        "duration": Param(3600, type="integer", minimum=1, description="Seconds until the generator ends."),
    },
):
    (
        run("prepare_warehouse", conf={"products": "{{ params.products }}"})
        >> TriggerDagRunOperator(
            task_id="deploy_generator",
            trigger_dag_id="deploy_generator",
            conf={
                "rate": "{{ params.rate }}",
                "duration": "{{ params.duration }}",
                "products": "{{ params.products }}",
            },
        )
        >> TopicEventsSensor(
            task_id="wait_for_events", pipeline="sales", events=1000, mode="reschedule", poke_interval=3, timeout=300
        )
        >> run("refresh_master_order")
        >> TriggerDagRunOperator(task_id="enrich_stream", trigger_dag_id="enrich_stream")
        >> EnrichedRowsSensor(
            task_id="wait_for_enriched_rows",
            rows=1000,
            since="{{ dag_run.start_date }}",
            mode="reschedule",
            poke_interval=3,
            timeout=300,
        )
        >> run("check_quality")
    )
