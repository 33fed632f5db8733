"""Move the records of a reader to a writer: dump, restore, import and export differ in reader or writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from metastore.transfer.contract import Reader, Writer
from metastore.transfer.records import Record, key_text
from metastore.transfer.selection import Selection


class Moved(NamedTuple):
    """The numbers of records of each kind that were moved, or would be, and the records that were not moved, with the reasons."""

    counts: dict[str, int]
    skipped: list[str]


def move(
    reader: Reader,
    writer: Writer | None,
    selection: Selection,
    *,
    resume: bool = False,
    each: Callable[[str], None] | None = None,
    adjust: Callable[[Record], Record] | None = None,
) -> Moved:
    """Write the wanted records of a source; without a writer only check them. `each` gets the objects except partitions.

    `adjust` changes records on their way.

    MetastoreError when either side or `Selection.for_move` refuses. Written records stay, and `resume` continues after them where the
    target can do that.
    """
    counts = Counter[str]()
    selection = selection.for_move()
    if writer is not None:
        selection = selection._replace(done=writer.begin(selection, resume=resume))
    records = _counted(reader.records(selection), counts, each)
    if adjust is not None:
        records = map(adjust, records)
    if writer is None:
        for _ in records:
            pass
    else:
        writer.write(records)
    return Moved(dict(counts), [*reader.skipped, *(writer.skipped if writer is not None else ())])


def _counted(records: Iterable[Record], counts: Counter[str], each: Callable[[str], None] | None) -> Iterator[Record]:
    for record in records:
        counts[record.kind] += 1
        if each is not None and record.kind not in ("partition", "descriptor"):
            each(key_text(record))
        yield record
