"""Airflow operators, one file a thing they talk to."""
