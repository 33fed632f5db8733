"""Rows of transactions, locks and write ids."""
