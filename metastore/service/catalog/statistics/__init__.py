"""Statistics of columns and of whole tables."""
