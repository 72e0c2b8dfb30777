"""Look at the stream every minute, and fail with one line when it is not well.

| symptom | where to look | what to do |
| --- | --- | --- |
| crash-looping | the program's log, `enrich_stream-<pipeline>.log` in `logs/` of the state | correct what its last \
line says |
| not kept | the Dag <pipeline>.enrich | trigger it |
| paused | the Dag <pipeline>.enrich | unpause it |
| stuck | the program's log; `make status` | see whether the warehouse answers |
| the lag grows | the table `batch_counters` | add cores or memory, or wait for the end of the burst |
| too many rejected events | `<pipeline>_rejected`: the reasons | correct the producer or the pipeline's fields |
| too many unmatched events | `<pipeline>_unmatched`: the keys | load the missing master rows, then refresh |
| damaged shed files | the table `shed_segment`, column `damage` | docs/operating.md says how to restore them |
| the snapshot is old | the newest run of the Dag <pipeline>.refresh | run it |
| a quality check failed | the table `quality_check` | correct the rows, then run <pipeline>.check, or \
<pipeline>.refresh for the master table |
"""

from __future__ import annotations

from datetime import timedelta

from plugins.defaults import QUICK_TASKS
from plugins.operators.watch import WatchStreamOperator
from plugins.pipeline_dags.dag import pipeline_dag


def watch(pipeline: str) -> None:
    """Make the Dag that watches the stream."""
    with pipeline_dag(
        "watch",
        pipeline,
        __doc__,
        description="Is red with one line while the stream is not well.",
        schedule=timedelta(minutes=1),
        max_active_runs=1,
        default_args=QUICK_TASKS,
    ):
        WatchStreamOperator(task_id="watch", pipeline=pipeline)
