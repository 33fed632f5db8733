"""Facts of the interface itself about each method, and where releases differ."""
