"""ORC files of transactional tables: their rows, their footers and Hive's notes there."""
