"""Methods of what engines keep here: plans, schemas, queries, procedures, connectors, indexes, measurements."""
