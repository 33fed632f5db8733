"""Pure rules: names, patterns, filters, types, table kinds. Nothing here reads a file, a socket or a database."""
