"""Values of columns as Hive stores and reads them: calendars, characters, nulls, changed types, constraints."""
