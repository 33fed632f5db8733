"""Objects of the catalog and their replies: short forms to make them, random messages, recorded events, and comparisons."""
