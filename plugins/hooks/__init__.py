"""Airflow hooks: one file for each service that they connect to."""
