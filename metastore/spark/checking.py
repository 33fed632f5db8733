"""Find the files of a transactional table that other readers read wrongly. This module changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from metastore.acid.buckets import buckets
from metastore.acid.files import Files, FsspecFiles
from metastore.acid.folders.misplaced import Exact, misplaced, named_in
from metastore.acid.folders.selecting import Selected, select
from metastore.acid.folders.table import Folder
from metastore.acid.transactions import TableSnapshot, Transaction
from metastore.rules.transactions.acid_directories import parse
from metastore.spark.session.catalog import AcidTableInfo

COMPACT = "compact it (major) by `metastore compactor`"


class Finding(NamedTuple):
    """A fault of one file of a table or partition, `k=v/..`, and its remedy."""

    partition: str
    file: str
    problem: str
    advice: str


def findings(files: Files, folders: Sequence[Folder], snapshot: TableSnapshot, exact: Exact) -> Iterator[Finding]:
    """Yield the faults of the files of a full-ACID table that a snapshot reads. FileError, NotEnoughHistory."""
    for selected in select(files, folders, snapshot, insert_only=False):
        yield from _misplaced(selected, misplaced(files, selected, exact))
        for path in selected.originals:
            name = path.rpartition("/")[2]
            if not buckets.is_original(name) and buckets.of_file(name) is None:
                problem = f"Hive refuses the whole {'partition' if selected.folder.name else 'table'} for a file of this name"
                yield Finding(selected.folder.name, path, problem, f"{COMPACT}, which writes the rows into files that Hive reads")


def _misplaced(selected: Selected, found: dict[str, list[int]]) -> Iterator[Finding]:
    for path, numbers in found.items():
        problem = f"its rows name bucket {', '.join(map(str, numbers))}: Hive shows deleted rows of the file again"
        directory = parse(path.split("/")[-2])
        if directory is not None and directory.visibility:
            problem += "; the compaction that made this file may have brought back rows that were deleted before it"
        yield Finding(selected.folder.name, path, problem, f"{COMPACT}, not by Hive's, which would make that permanent")


def check_table(uri: str, table: AcidTableInfo) -> list[Finding]:
    """Return the faults of the files of a table, read without Spark. The Thrift exceptions of the metastore, OSError."""
    if table.is_insert_only:
        return []
    with Transaction.begin(uri, read_only=True) as txn:
        snapshot = txn.snapshots([(table.database, table.name)])[table.database, table.name]
        folders = txn.call(table.folders)
        return list(findings(FsspecFiles(), folders, snapshot, named_in))
