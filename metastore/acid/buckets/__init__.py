"""Numbers of buckets in row ids, and the hash that divides rows by them."""
