"""Find files of events whose rows name another bucket than the file's own, see `acid/orc/own_bucket.py`. This module changes nothing.

Earlier versions wrote such files where Spark had computed a frame on the driver, and their compactions kept the rows there. Now compactions
bring the rows into the files of their own buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from metastore.acid.buckets import buckets
from metastore.acid.files import Files, in_parallel
from metastore.acid.folders.selecting import Selected
from metastore.acid.orc.orc_files import open_orc
from metastore.acid.orc.own_bucket import footer_at_end, named

Exact = Callable[[str], Collection[int]]
"""Returns the buckets that the rows of a file name, by reading them."""


def misplaced(files: Files, selected: Selected, exact: Exact) -> dict[str, list[int]]:
    """Return the buckets that rows name, for files of events in which not all rows name the file's own. FileError.

    The end of each file is read; its rows are read only where the end does not decide.
    """

    def look(path: str) -> tuple[str, list[int]] | None:
        own = buckets.of_file(path.rpartition("/")[2])
        found = named(footer_at_end(lambda size: files.read_end(path, size)))
        if found is None or found.bucket == own:
            return None
        numbers = exact(path) if found.bucket is None else {found.bucket}
        return None if set(numbers) == {own} else (path, sorted(numbers))

    return dict(filter(None, in_parallel(look, [*selected.inserts, *selected.deletes])))


def named_in(path: str) -> set[int]:
    """Return the buckets that the rows of a file name, by reading them through PyArrow. OSError, ArrowException."""
    numbers = open_orc(path).read(columns=["bucket"]).column("bucket").unique()
    return {buckets.decode(number) for number in numbers.to_pylist()}
