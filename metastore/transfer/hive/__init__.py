"""Records of the database of a Java metastore, with Hive's schema of 2.3 to 4.x, on PostgreSQL, MariaDB or MySQL. Never changes a row."""
