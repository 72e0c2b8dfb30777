"""Reading events: from bytes to Arrow columns."""
