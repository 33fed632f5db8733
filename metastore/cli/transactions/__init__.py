"""Commands of transactions, locks and compactions."""
