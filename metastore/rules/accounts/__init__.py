"""Kerberos names and delegation tokens."""
