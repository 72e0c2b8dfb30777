"""Writing rows to the warehouse and reading them from it, in bulk."""
