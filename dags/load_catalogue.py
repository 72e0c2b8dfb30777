"""Fill the demo's master table, `product`, with a catalogue of products if it is empty.

The Dag demo runs it before sales.prepare. Master data of your own comes from wherever it is kept.

| symptom | where to look | what to do |
| --- | --- | --- |
| migrate fails | the log of the task | see whether MariaDB answers: `make status` |
| load_catalogue takes long | the log of the task: rows so far | wait, or run the Dag with fewer products |
"""

from airflow.sdk import DAG, Param

from plugins.defaults import ENDING_TASKS
from plugins.operators.master import LoadCatalogueOperator
from plugins.operators.warehouse import MigrateOperator

with DAG(
    "load_catalogue",
    description="Fills the demo's table of products if it is empty.",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    max_active_runs=1,
    default_args=ENDING_TASKS,
    params={
        "products": Param(
            10_000,
            type="integer",
            minimum=1,
            maximum=100_000_000,
            description="Products to create if the table is empty.",
        )
    },
):
    MigrateOperator(task_id="migrate") >> LoadCatalogueOperator(task_id="load_catalogue", rows="{{ params.products }}")
