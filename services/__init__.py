"""Install and run Kafka, MariaDB, Spark and Airflow on one machine."""
