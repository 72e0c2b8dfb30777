"""What benchmark_stream runs and how it measures."""
