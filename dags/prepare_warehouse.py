"""Bring the warehouse's tables and the pipeline's topics to this version, and fill the product table if it is empty."""

from airflow.sdk import DAG, Param

from plugins.operators.warehouse import (
    CreateTablesOperator,
    CreateTopicsOperator,
    LoadCatalogueOperator,
    MigrateOperator,
)

with DAG(
    "prepare_warehouse",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    max_active_runs=1,
    params={
        "products": Param(10_000, type="integer", minimum=1, description="Size of the catalogue, if there is none.")
    },
):
    CreateTopicsOperator(task_id="create_topics", pipeline="sales")
    MigrateOperator(task_id="migrate") >> [
        CreateTablesOperator(task_id="create_tables", pipeline="sales"),
        LoadCatalogueOperator(task_id="load_catalogue", rows="{{ params.products }}"),
    ]
