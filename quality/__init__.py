"""Great Expectations suites, one file a table, and how they are run."""
