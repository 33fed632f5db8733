"""Values of partition columns: their types, their texts and their names in paths."""
