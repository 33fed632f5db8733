"""Write rows as an earlier version did, into files of other buckets than their own, and read the buckets of the rows in each file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import orc

from metastore.acid.buckets import buckets
from metastore.acid.rewriting.event_file import EventWriter, OrcOptions


def scatter(file: Path, tasks: int = 2) -> None:
    """Divide a bucket's file of inserted rows among files of this bucket and the next ones, as if `tasks` tasks had written it."""
    events = orc.ORCFile(str(file)).read()
    first = buckets.of_file(file.name)
    assert first is not None
    remove(file)
    for task in range(tasks):
        begin, end = task * len(events) // tasks, (task + 1) * len(events) // tasks
        rewrite(file.with_name(buckets.file_name(first + task)), [events.slice(begin, end - begin)])


def rewrite(file: Path, tables: Iterable[pa.Table]) -> None:
    """Write the events of one or several successive files into one file."""
    events = pa.concat_tables(tables).combine_chunks()
    copied = events.take(pa.array(range(len(events))))  # the writer takes no slices
    file.parent.mkdir(exist_ok=True)
    remove(file)
    with file.open("wb") as stream, EventWriter(stream, copied.schema, OrcOptions(), deletes=False) as writer:
        for batch in copied.to_batches():
            writer.write(batch)


def numbered(table: pa.Table, numbers: Sequence[int]) -> pa.Table:
    """Return the events with other numbers of buckets in their rows."""
    return table.set_column(2, table.schema.field(2), pa.array(numbers, pa.int32()))


def remove(file: Path) -> None:
    """Remove a file with the checksums that Hadoop keeps beside it."""
    file.unlink(missing_ok=True)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def misplaced(folder: Path) -> dict[str, set[int]]:
    """Return by file the buckets in its rows, for files with a row whose bucket is not the file's."""
    out: dict[str, set[int]] = {}
    for file in sorted(folder.rglob("bucket_*")):
        numbers: list[Any] = orc.ORCFile(str(file)).read(columns=["bucket"]).column("bucket").to_pylist()
        found = {buckets.decode(number) for number in numbers}
        if found - {buckets.of_file(file.name)}:
            out[str(file.relative_to(folder))] = found
    return out
