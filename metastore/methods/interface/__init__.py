"""What the interface itself says of each method, and where releases differ."""
