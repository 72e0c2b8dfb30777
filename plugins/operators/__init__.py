"""Airflow operators: one file for each part of the system that they work on."""
