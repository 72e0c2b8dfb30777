"""Show each broken file in pipelines/ as an import error of Airflow; there is no Dag in here.

The Dags of the other pipelines are in pipelines.py, which this error does not touch.
"""

from plugins.pipeline_dags.factory import check_files

check_files()
