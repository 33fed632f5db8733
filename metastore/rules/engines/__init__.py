"""Contents of resource plans, schedules and SQL scripts that Hive keeps here."""
