"""Great Expectations suites, one file for each table, and the code that runs them."""

import logging

# Here, because Great Expectations writes two hundred lines about itself when it is imported.
logging.getLogger("great_expectations").setLevel(logging.WARNING)
