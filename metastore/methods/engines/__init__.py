"""Methods of objects that engines keep here: plans, schemas, queries, procedures, connectors, indexes, measurements."""
