"""The programs that spark-submit runs, and their rooms."""
