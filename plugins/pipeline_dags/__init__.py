"""The Dags that every pipeline has: one file for each job. `factory.py` makes them for each file in `pipelines/`.

The docstring of a job's file is the runbook that Airflow shows. It says `<pipeline>` where the name of the pipeline is.
"""
