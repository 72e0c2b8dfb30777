"""From the bytes of events to Arrow columns."""
