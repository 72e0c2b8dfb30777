"""Create missing topics and tables, fill the product table if it is empty, and start its change log.

You can run it again at any time: it keeps existing topics, tables and rows.
"""

from airflow.sdk import DAG, Param

from plugins.operators.master import LoadCatalogueOperator, PrepareMasterOperator
from plugins.operators.warehouse import CreateTablesOperator, CreateTopicsOperator, MigrateOperator

with DAG(
    "prepare_warehouse",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    max_active_runs=1,
    params={
        "products": Param(10_000, type="integer", minimum=1, description="Products to create if the table is empty.")
    },
):
    CreateTopicsOperator(task_id="create_topics", pipeline="sales")
    (
        MigrateOperator(task_id="migrate")
        >> CreateTablesOperator(task_id="create_tables", pipeline="sales")
        >> LoadCatalogueOperator(task_id="load_catalogue", rows="{{ params.products }}")
        >> PrepareMasterOperator(task_id="prepare_master", pipeline="sales")
    )
