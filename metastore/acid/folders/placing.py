"""Give finished files their places in a table: a transaction writes aside first, into hidden folders. This module writes no rows.

.staging_txn_N_PART/..     files of transaction N, for one part of its work
base_W, delta_..           the directories that readers take, made of such files by renaming them
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from metastore.acid.buckets import buckets
from metastore.acid.files import FileError, Files, in_parallel
from metastore.acid.folders.table import TableInfo
from metastore.acid.orc.own_bucket import footer_at_end, named
from metastore.acid.storage import VERSION, VERSION_FILE
from metastore.rules.transactions.acid_directories import staging_name


def staging(transaction: int, table: TableInfo, part: str) -> str:
    """Return the hidden folder into which a part of a transaction's files is written first; its name holds the transaction."""
    return f"{table.location}/{staging_name(transaction, part)}"


def remove_staged(files: Files, folder: str) -> None:
    """Remove a staging folder; where that fails the cleaner does it later."""
    with suppress(FileError):
        files.delete(folder)


def place(files: Files, table: TableInfo, target: str, staged: Iterable[tuple[str, int]]) -> None:
    """Make a base or delta directory of (path of a file, bucket) pairs, and write it through to the disk.

    FileError, also where rows of a file name another bucket.
    """
    listed = list(staged)
    if len({number for _, number in listed}) < len(listed):
        raise FileError(f"{target}: several tasks wrote rows of one bucket; nothing was moved")
    if not table.is_insert_only:
        in_parallel(lambda item: _check_own(files, *item), listed)
    make_directory(files, table, target)
    for path, number in listed:
        name = f"{number:06d}_0" if table.is_insert_only else buckets.file_name(number)
        files.rename(path, f"{target}/{name}")
    files.sync(target, table.location)


def _check_own(files: Files, path: str, number: int) -> None:
    found = named(footer_at_end(lambda size: files.read_end(path, size)))
    if found is not None and found.is_wrong(number):
        raise FileError(f"{path} is the file of bucket {number}, but its rows name bucket {found}; nothing was moved")


def make_directory(files: Files, table: TableInfo, target: str) -> None:
    """Make an empty base or delta directory. FileError."""
    files.make(target)
    if not table.is_insert_only:
        files.write(f"{target}/{VERSION_FILE}", VERSION)
