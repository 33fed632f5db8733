"""A server's counts, records and reports of its calls."""
