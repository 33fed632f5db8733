"""Read SQL statements that are Hive's alone: texts in, descriptions out. Knows neither Spark nor a metastore."""
