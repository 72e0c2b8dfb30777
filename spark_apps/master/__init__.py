"""Master data: the demo's catalogue, estimated frequencies, the ranked copy, snapshots, the change log."""
