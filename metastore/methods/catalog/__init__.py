"""Methods of catalogs and of what lies in them: databases, tables, partitions, statistics, functions, constraints."""
