"""Authentication of connections: one module for each mechanism. None of them knows of SQL: `service` gives them what is stored."""
