"""Methods of catalogs and the objects in them: databases, tables, partitions, statistics, functions, constraints."""
