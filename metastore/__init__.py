"""A standalone server for the Hive Metastore Thrift interface."""

__version__ = "0.1.0"
