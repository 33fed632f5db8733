"""A Spark session's own parts: tables as the metastore describes them, files through Hadoop, and columns' assignment."""
