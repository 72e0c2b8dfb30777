"""Run the other Dags in order: load products, prepare the warehouse, start the generator, order the master data.

Then start the stream, wait for enriched rows and check them. The generator and the stream keep running after this Dag
has ended; the Dag sales.stop stops the stream.

| symptom | where to look | what to do |
| --- | --- | --- |
| a task has failed | the newest run of the Dag of the same name: its failed task has the line | what it says, then \
run this Dag again |
| a Dag is paused | the log of the task of its name | unpause it, then run this Dag again |
| wait_for_events fails | the Dag deploy_generator, and `generator-<pipeline>.log` in `logs/` of the state | see \
whether the broker answers: `make status` |
| wait_for_enriched_rows fails | the Dag sales.watch says what is wrong with the stream | what it says |
"""

from airflow.sdk import DAG, Param

from plugins.defaults import ENDING_TASKS
from plugins.operators.dags import RunDagOperator
from plugins.sensors.stream import EnrichedRowsSensor, TopicEventsSensor

with DAG(
    "demo",
    description="Runs the whole story, in order.",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    max_active_runs=1,
    default_args=ENDING_TASKS,
    render_template_as_native_obj=True,  # the other Dags get params as numbers, not as text
    params={
        "products": Param(
            10_000,
            type="integer",
            minimum=1,
            maximum=100_000_000,
            description="Products to create if the table is empty.",
        ),
        "rate": Param(
            500, type="integer", minimum=1, maximum=1_000_000, description="Mean number of events per second."
        ),
        "duration": Param(
            3600, type="integer", minimum=1, maximum=31_536_000, description="Seconds until the generator ends."
        ),
    },
):
    (
        RunDagOperator(task_id="load_catalogue", conf={"products": "{{ params.products }}"})
        >> RunDagOperator(task_id="sales.prepare")
        >> RunDagOperator(
            task_id="deploy_generator",
            wait=False,
            conf={
                "rate": "{{ params.rate }}",
                "duration": "{{ params.duration }}",
                "products": "{{ params.products }}",
            },
        )
        >> TopicEventsSensor(task_id="wait_for_events", pipeline="sales", events=1000, poke_interval=3, timeout=300)
        >> RunDagOperator(task_id="sales.refresh")
        >> RunDagOperator(task_id="sales.enrich", wait=False)
        >> EnrichedRowsSensor(
            task_id="wait_for_enriched_rows",
            rows=1000,
            since="{{ dag_run.start_date }}",
            poke_interval=3,
            timeout=300,
        )
        >> RunDagOperator(task_id="sales.check")
    )
