"""Rows of what engines keep here."""
