"""Records of our own databases: read in one snapshot, and written in batches."""
