"""Catalogs and databases, and all objects in them: functions, constraints, privileges."""
