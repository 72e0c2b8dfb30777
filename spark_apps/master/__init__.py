"""Master data: made, loaded, ordered by estimated access frequency, published as a snapshot."""
