"""Methods about the server itself, and its notification log."""
