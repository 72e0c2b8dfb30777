"""Airflow triggers: what the triggerer waits for."""
