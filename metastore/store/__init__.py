"""Rows of the metadata: SQLAlchemy Core, one module per noun. Knows neither the Thrift protocol nor files."""
