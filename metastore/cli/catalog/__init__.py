"""Commands that show the catalog and call its methods."""
