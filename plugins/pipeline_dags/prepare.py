"""Create missing topics and tables of the pipeline `<pipeline>`, and start the change log of its master table.

You can run it again at any time: it keeps existing topics, tables and rows.

| symptom | where to look | what to do |
| --- | --- | --- |
| create_topics fails | the log of the task; `make status` | start the broker: `make up` |
| migrate or create_tables fails | the log of the task names table and column | correct the pipeline's file, or `make \
up` if MariaDB does not answer |
| prepare_master fails | the log of the task names the rule that the master table breaks | correct the master table |
"""

from __future__ import annotations

from plugins.defaults import ENDING_TASKS
from plugins.operators.master import PrepareMasterOperator
from plugins.operators.warehouse import CreateTablesOperator, CreateTopicsOperator, MigrateOperator
from plugins.pipeline_dags.dag import pipeline_dag


def prepare(pipeline: str) -> None:
    """Make the Dag that prepares the broker and the warehouse."""
    with pipeline_dag(
        "prepare",
        pipeline,
        __doc__,
        description="Creates the pipeline's topics and tables.",
        schedule=None,
        max_active_runs=1,
        default_args=ENDING_TASKS,
    ):
        CreateTopicsOperator(task_id="create_topics", pipeline=pipeline)
        (
            MigrateOperator(task_id="migrate")
            >> CreateTablesOperator(task_id="create_tables", pipeline=pipeline)
            >> PrepareMasterOperator(task_id="prepare_master", pipeline=pipeline)
        )
