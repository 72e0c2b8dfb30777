"""Run the generator: it sends a bursty stream of sales to Kafka, in which few products have most sales (Zipf's law).

The log of the Airflow task ends with the number of acknowledged events.
"""

from airflow.sdk import DAG, Param

from plugins.operators.stream import GenerateOperator

with DAG(
    "deploy_generator",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    max_active_runs=1,
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
        options={
            "rate": "{{ params.rate }}",
            "duration": "{{ params.duration }}",
            "keys": "{{ params.products }}",
            "exponent": "{{ params.exponent }}",
            "seed": "{{ params.seed }}",
        },
    )
