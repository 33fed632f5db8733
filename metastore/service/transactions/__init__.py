"""Transactions, locks, write ids, and the removal of old ones."""
