"""Transactional tables for clients of the Thrift API, without Spark: transactions, buckets, files."""
