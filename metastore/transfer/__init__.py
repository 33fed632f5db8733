"""Move what metastores hold: readers and writers of records, and what is made of them (dump, restore, import, verify). Serves no calls."""
