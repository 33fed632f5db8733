"""The databases of the tests: their servers, replicas, pools and disks, the counts of their statements, and commits that fail."""
