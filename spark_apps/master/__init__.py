"""Master data: the demo's catalogue, the estimate, the ranked copy, snapshots, the change log."""
