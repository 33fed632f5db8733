"""Move the objects of metastores: readers and writers of records, and their uses (dump, restore, import, verify). Serves no calls."""
