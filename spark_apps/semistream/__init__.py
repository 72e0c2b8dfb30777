"""Semi-stream joins."""
