"""The page "Freshet" in Airflow's navigation: what each pipeline does now, plots of its counters, and its buttons."""
