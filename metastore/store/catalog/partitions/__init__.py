"""Rows of partitions."""
