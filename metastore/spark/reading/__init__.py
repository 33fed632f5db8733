"""Choose the files of a snapshot and read them as one frame."""
