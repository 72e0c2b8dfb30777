"""Keep the generator running: it sends a bursty stream of sales to Kafka, in which few products have most sales.

It runs apart from this Dag's task until its duration is over, or the Dag stop_generator stops it. A second run with
other parameters replaces it; one with the same parameters is skipped.

| symptom | where to look | what to do |
| --- | --- | --- |
| the task is skipped | its log: the generator runs already, or was stopped since | trigger the Dag again |
| the task has failed | its log has the generator's last line | correct the parameter that it names |
| no events come | `generator-<pipeline>.log` in `logs/` of the state | see whether the broker answers: `make status` |
"""

from airflow.sdk import DAG, Param

from plugins.defaults import TASKS
from plugins.operators.stream import GenerateOperator

with DAG(
    "deploy_generator",
    description="Keeps the generator running, which sends sales to Kafka.",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    default_args=TASKS,
    params={
        "rate": Param(
            500, type="integer", minimum=1, maximum=1_000_000, description="Mean number of events per second."
        ),
        "duration": Param(
            3600, type="integer", minimum=1, maximum=31_536_000, description="Seconds until the generator ends."
        ),
        "products": Param(
            10_000, type="integer", minimum=1, maximum=100_000_000, description="Product ids are 1 to this number."
        ),
        "exponent": Param(
            1.0, type="number", minimum=0, maximum=10, description="Zipf's exponent: 0 is uniform, 1 is 80/20."
        ),
        "seed": Param(
            7, type="integer", minimum=0, maximum=2**63 - 1, description="The same seed gives the same stream."
        ),
    },
):
    GenerateOperator(
        task_id="generate",
        pipeline="sales",
        retries=3,
        retry_delay=5,
        options={
            "rate": "{{ params.rate }}",
            "duration": "{{ params.duration }}",
            "keys": "{{ params.products }}",
            "exponent": "{{ params.exponent }}",
            "seed": "{{ params.seed }}",
        },
    )
