"""What readers and writers of transactional tables need as clients of the Thrift API: transactions, buckets, files. Without Spark."""
