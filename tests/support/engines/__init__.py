"""Java's metastore, Hive, Trino and Spark as the tests run them."""
