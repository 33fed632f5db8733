"""Rows of users, roles and tokens."""
