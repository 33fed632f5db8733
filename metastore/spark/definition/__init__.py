"""Definitions of transactional tables: what a table is to be, and how the metastore is asked for it."""
