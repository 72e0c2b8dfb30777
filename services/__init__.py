"""How Kafka, MariaDB, Spark and Airflow are installed and run on one machine."""
