"""List the folder of a transactional table or partition, add up the sizes of directories in it, make a base without rows.

Never chooses or deletes a directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from metastore.hidden import is_hidden
from metastore.warehouse.directories import Warehouse
from metastore.warehouse.locations import join

METADATA = "_metadata_acid"


def listing(warehouse: Warehouse, location: str) -> list[tuple[str, bool, bool]]:
    """Return (name, is a directory, is marked as a compactor's) of the entries of a folder; none when it is missing. MetaError.

    The mark is a file that compactors of Hive 3 write. Only bases without a transaction in their names are searched for it.
    """
    found = warehouse.entries(location)
    unsure = [name for name, is_directory in found if is_directory and name.startswith("base_") and "_v" not in name]
    marked = {name for name, mark in zip(unsure, _marks(warehouse, location, unsure), strict=True) if mark}
    return [(name, is_directory, name in marked) for name, is_directory in found]


def _marks(warehouse: Warehouse, location: str, bases: Sequence[str]) -> list[bool]:
    def is_compacted(base: str) -> bool:
        text = warehouse.read(join(location, f"{base}/{METADATA}"))
        try:
            return text is not None and json.loads(text).get("dataFormat") == "compacted"
        except (ValueError, AttributeError):
            return False

    return warehouse.each(is_compacted, bases, location)


def mark_empty_base(warehouse: Warehouse, place: str, why: str) -> None:
    """Write a file into a base with the reason why it has no rows. Without the file some readers ignore the base. MetaError."""
    warehouse.write(join(place, METADATA), json.dumps({"thisFileVersion": "0", "dataFormat": why}).encode())


def total_size(warehouse: Warehouse, location: str, names: Iterable[str]) -> int:
    """Return the bytes below directories of a folder, hidden files left out; in parallel on a remote file system. MetaError."""
    places = [join(location, name) for name in names]
    return sum(summary.size for summary in warehouse.each(warehouse.summarize, places, location))


def folders_below(warehouse: Warehouse, location: str, depth: int) -> Iterator[str]:
    """Yield the visible directories `depth` levels below a location, such as the partitions of a table with `depth` keys. MetaError."""
    if depth == 0:
        yield location
        return
    for name, is_directory in warehouse.entries(location):
        if is_directory and not is_hidden(name):
            yield from folders_below(warehouse, join(location, name), depth - 1)
