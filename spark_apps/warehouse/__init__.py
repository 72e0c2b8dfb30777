"""How rows are written to and read from the warehouse in bulk."""
