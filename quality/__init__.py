"""Great Expectations suites, one file for each table, and the code that runs them."""
