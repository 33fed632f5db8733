"""ORC files of transactional tables: their rows, their footers and what Hive notes there."""
