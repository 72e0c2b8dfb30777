"""Make the Dags of each pipeline, which Airflow shows as `<pipeline>.prepare`, `<pipeline>.enrich` and so on.

plugins/pipeline_dags/ has a file for each of them. A pipeline is a file in pipelines/.
"""

from plugins.pipeline_dags.factory import make_dags

make_dags()
