"""The relational model."""
