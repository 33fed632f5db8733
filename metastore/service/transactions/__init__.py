"""Transactions, locks, write ids, and what is forgotten of them."""
