"""Transactional tables: their files, transactions, locks and compactions."""
