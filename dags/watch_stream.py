"""Look at the stream every minute, and fail with one line when it is not well.

| the line says | what to do |
| --- | --- |
| crash-looping | read the program's log, `enrich_stream-<pipeline>.log` in `logs/` of the state |
| not kept | trigger the Dag enrich_stream; unpause it if it is paused |
| stuck | see whether the warehouse answers; read the program's log |
| the lag grows | add cores or memory, or wait for the end of the burst |
| damaged shed files | docs/operating.md says how to restore them |
| the snapshot is old | run the Dag refresh_master_order |
"""

from datetime import timedelta

from airflow.sdk import DAG

from plugins.operators.watch import WatchStreamOperator

with DAG(
    "watch_stream", doc_md=__doc__, tags=["freshet"], schedule=timedelta(minutes=1), catchup=False, max_active_runs=1
):
    WatchStreamOperator(task_id="watch", pipeline="sales")
