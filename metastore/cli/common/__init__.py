"""Options, names of objects and output that the commands share."""
