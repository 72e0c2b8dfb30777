"""Airflow sensors: one file for each part of the system that they look at."""
