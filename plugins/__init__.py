"""Our Airflow operators, sensors and hooks. This is also the folder that Airflow loads its plugins from."""
