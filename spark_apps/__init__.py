"""Programs that spark-submit runs, and what they ship to executors."""
