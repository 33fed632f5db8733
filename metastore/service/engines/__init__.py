"""Objects that engines keep here and the server does not use: resource plans, registry, scheduled queries and their like."""
