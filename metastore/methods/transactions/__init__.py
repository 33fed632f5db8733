"""Methods of transactions, locks and the compaction queue."""
