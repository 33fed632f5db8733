"""Processes and threads that serve connections."""
