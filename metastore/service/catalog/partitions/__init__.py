"""Partitions: queries, changes, marks."""
