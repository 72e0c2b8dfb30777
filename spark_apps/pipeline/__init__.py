"""A pipeline: what its file says, and the tables and topics that are made from it."""
