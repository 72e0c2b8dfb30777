"""How the query runs: session, checkpoint, lease, stop, retry."""
