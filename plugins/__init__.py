"""What Airflow runs for us: operators, sensors and hooks. Airflow itself loads this folder for its plugins."""
