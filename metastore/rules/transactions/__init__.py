"""Transactions, locks, snapshots, and the directories that a transactional table is made of."""
