"""Write rows, updates, deletions and merges as Hive's files of events."""
