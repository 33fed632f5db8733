"""Authentication of connections: one module for each mechanism. None of them runs SQL: `service` reads the stored credentials."""
