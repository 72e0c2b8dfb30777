"""Create missing topics and tables, fill the product table if it is empty, and start its change log.

You can run it again at any time: it keeps existing topics, tables and rows.

| symptom | where to look | what to do |
| --- | --- | --- |
| create_topics fails | the log of the task; `make status` | start the broker: `make up` |
| migrate or create_tables fails | the log of the task names table and column | correct the pipeline's file, or \
`make up` if MariaDB does not answer |
| load_catalogue takes long | the log of the task: rows so far | wait, or run the Dag with fewer products |
"""

from airflow.sdk import DAG, Param

from plugins.defaults import ENDING_TASKS
from plugins.operators.master import LoadCatalogueOperator, PrepareMasterOperator
from plugins.operators.warehouse import CreateTablesOperator, CreateTopicsOperator, MigrateOperator

with DAG(
    "prepare_warehouse",
    description="Creates topics and tables, and products if there are none.",
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
    CreateTopicsOperator(task_id="create_topics", pipeline="sales")
    (
        MigrateOperator(task_id="migrate")
        >> CreateTablesOperator(task_id="create_tables", pipeline="sales")
        >> LoadCatalogueOperator(task_id="load_catalogue", rows="{{ params.products }}")
        >> PrepareMasterOperator(task_id="prepare_master", pipeline="sales")
    )
