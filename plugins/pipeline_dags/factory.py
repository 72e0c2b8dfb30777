"""Make the Dags of every pipeline: dags/pipelines.py calls `make_dags`, dags/broken_pipelines.py calls `check_files`.

Two Dag files, because Airflow deactivates all Dags of a file that has an import error. So a broken pipeline's file is
an import error of one Dag file, and the Dags of the other pipelines are in the other one.
"""

from __future__ import annotations

from contextlib import suppress

from foundation.errors import PipelineError
from plugins.pipeline_dags.announce import announce
from plugins.pipeline_dags.check import check
from plugins.pipeline_dags.enrich import enrich
from plugins.pipeline_dags.prepare import prepare
from plugins.pipeline_dags.refresh import refresh
from plugins.pipeline_dags.stop import stop
from plugins.pipeline_dags.watch import watch
from spark_apps.pipeline.definition import pipeline_names, read_pipeline

JOBS = (prepare, refresh, enrich, stop, check, watch, announce)


def make_dags() -> None:
    """Make the Dags of each pipeline whose file is valid."""
    for name in pipeline_names():
        with suppress(PipelineError):
            pipeline = read_pipeline(name)
            for make in JOBS:
                make(pipeline.name)


def check_files() -> None:
    """Read every pipeline's file.

    Raises:
        PipelineError: a file breaks a rule; the error names each such file.
    """
    broken = []
    for name in pipeline_names():
        try:
            read_pipeline(name)
        except PipelineError as error:
            broken.append(error)
    if broken:
        remedies = dict.fromkeys(error.remedy for error in broken)
        raise PipelineError("; ".join(error.what.rstrip(".") for error in broken), " ".join(remedies))
