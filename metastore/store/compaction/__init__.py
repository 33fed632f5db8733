"""Rows of the queue of compactions."""
