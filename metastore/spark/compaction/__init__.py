"""The compaction worker on Spark."""
