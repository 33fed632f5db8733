"""Snapshots of write ids as clients write them; the server only reads them."""

from metastore.rules.transactions.snapshots import TableSnapshots, format_table


def format_write_ids(seen: TableSnapshots) -> str:
    """Return the text of the snapshots of several tables."""
    return "$".join([str(seen.transaction), *(format_table(name, table) for name, table in seen.tables.items())])
