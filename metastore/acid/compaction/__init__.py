"""Compaction workers: how an entry of the queue is done, whoever reads and writes the files."""
