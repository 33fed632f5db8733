"""Locations of rows, and data that was taken away."""
