"""Adapt the methods of PySpark by which programs use tables to transactional tables, until `disable`."""
