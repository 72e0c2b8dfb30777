"""Airflow sensors, one file a thing they talk to."""
