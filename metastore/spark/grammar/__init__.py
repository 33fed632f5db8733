"""Read SQL statements that are Hive's alone: texts in, descriptions out. Uses neither Spark nor a metastore."""
