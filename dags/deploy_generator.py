"""Keep the generator running: it sends a bursty stream of sales to Kafka, in which few products have most sales.

It runs apart from this Dag's task until its duration is over, or the Dag stop_generator stops it. A second run with
other parameters replaces it.
"""

from airflow.sdk import DAG, Param

from plugins.operators.stream import GenerateOperator

with DAG(
    "deploy_generator",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    params={
        "rate": Param(500, type="integer", minimum=1, description="Mean number of events per second."),
        "duration": Param(3600, type="integer", minimum=1, description="Seconds until the generator ends."),
        "products": Param(10_000, type="integer", minimum=1, description="Product ids are 1 to this number."),
        "exponent": Param(1.0, type="number", minimum=0, description="Zipf's exponent: 0 is uniform, 1 is 80/20."),
        "seed": Param(7, type="integer", minimum=0, description="The same seed gives the same stream."),
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
