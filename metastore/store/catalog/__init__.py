"""Rows of catalogs, databases, functions, constraints, statistics."""
