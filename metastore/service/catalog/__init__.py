"""Catalogs and databases, and all that lies in them: functions, constraints, privileges."""
