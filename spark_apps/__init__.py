"""The programs that spark-submit runs, and the packages that they are made of."""
