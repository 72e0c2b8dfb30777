"""What a task does with its events: join, land, send, shed."""
