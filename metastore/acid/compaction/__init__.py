"""Compaction workers: the steps for an entry of the queue, apart from the reading and writing of files."""
