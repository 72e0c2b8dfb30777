"""Airflow hooks, one file a thing they talk to."""
