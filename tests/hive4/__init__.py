"""Hive 4.0.1's own engine works on this server: transactions, locks, compaction, materialized views, streaming ingest."""
