"""Write the files of a compaction without Spark: events or rows of one bucket into a new file."""
