"""Rows of objects that engines keep here."""
