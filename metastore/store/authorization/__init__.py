"""Rows of privileges, owners and grants on locations."""
