"""Choose the files that a snapshot reads of a table's folders: base, deltas, original files, and growing ones. Reads no rows.

Source: Hive's AcidUtils and OrcAcidUtils.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from metastore.acid.buckets import buckets
from metastore.acid.buckets.buckets import Bucket, Original
from metastore.acid.files import FileError, Files, Status, in_parallel
from metastore.acid.folders.table import Folder
from metastore.acid.transactions import TableSnapshot
from metastore.hidden import is_hidden
from metastore.rules.transactions.acid_directories import Delta, Extent, FolderEntry, FolderState, SeenWriteIds, decide, parse

FLUSH_LENGTH = "_flush_length"


@dataclass
class Selected:
    """The files of one folder that a snapshot reads."""

    folder: Folder
    inserts: list[str] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    originals: list[str] = field(default_factory=list)
    """Files of rows alone, from before the table was transactional, or loaded into a base or delta by Hive's LOAD DATA."""
    growing: list[tuple[str, int]] = field(default_factory=list)
    """Files that a stream still appends to, with the length up to which they are readable."""
    mixed: bool = False
    """Whether a file holds rows that the snapshot must not see."""
    bytes: int = 0

    def by_bucket(self, named: Mapping[str, Collection[int]] | None = None) -> list[Bucket]:
        """Split the files by buckets; delete events are found in the file of the same bucket.

        `named` has the buckets that a file's rows name, by path, where these are not the file's own: the file belongs to all of them.
        """
        out: dict[int, Bucket] = {}

        def of(path: str) -> list[Bucket]:
            own = buckets.of_file(path.rpartition("/")[2]) or 0
            numbers = (named or {}).get(path, [own])
            return [out.setdefault(number, Bucket(number, is_mixed=bool(named))) for number in numbers]

        for path, length in [*((path, None) for path in self.inserts), *self.growing]:
            for bucket in of(path):
                bucket.inserts.append((path, length))
        for path in self.deletes:
            for bucket in of(path):
                bucket.deletes.append(path)
        for original in numbered(self.folder, self.originals):
            out.setdefault(original.bucket, Bucket(original.bucket)).originals.append(original)
        return [out[number] for number in sorted(out)]

    def delete_directories(self) -> list[str]:
        """Return the delete deltas."""
        return list(dict.fromkeys(path.rpartition("/")[0] for path in self.deletes))

    def of_bucket(self, bucket: Bucket) -> Selected:
        """Return one of the parts of `by_bucket` as a selection."""
        return Selected(
            self.folder,
            [path for path, length in bucket.inserts if length is None],
            bucket.deletes,
            [original.path for original in bucket.originals],
            [(path, length) for path, length in bucket.inserts if length is not None],
            self.mixed,
        )


def select(files: Files, folders: Sequence[Folder], snapshot: TableSnapshot, *, insert_only: bool) -> list[Selected]:
    """Choose the files that a snapshot reads in each folder. FileError; NotEnoughHistory when a compaction has overtaken the snapshot."""
    return in_parallel(lambda folder: _select(files, folder, snapshot, insert_only=insert_only), folders)


def state_of(files: Files, folder: Folder, snapshot: TableSnapshot) -> tuple[FolderState, dict[str, Status]]:
    """Return the use of a folder's directories in a snapshot, and its entries by name."""
    listed = {status.name: status for status in files.list(folder.location)}
    entries = [FolderEntry(name, status.is_directory, _is_compacted(files, status)) for name, status in listed.items()]
    return decide(entries, snapshot.write_ids, snapshot.transactions), listed


def _is_compacted(files: Files, status: Status) -> bool:
    """Return whether a base without a transaction in its name was written by Hive 3's compactor, which notes that in a file."""
    if not status.is_directory or not status.name.startswith("base_") or "_v" in status.name:
        return False
    return any(each.name == "_metadata_acid" and b'"compacted"' in files.read(each.path) for each in files.list(status.path))


def _select(files: Files, folder: Folder, snapshot: TableSnapshot, *, insert_only: bool) -> Selected:
    out = Selected(folder)
    state, listed = state_of(files, folder, snapshot)
    for name in state.originals:
        _add_originals(files, listed[name], out)
    if state.base is not None:
        _add(files, listed[state.base.name], out, out.inserts, insert_only=insert_only)
    for delta in state.deltas:
        out.mixed = out.mixed or _is_mixed(delta, snapshot.write_ids)
        _add(files, listed[delta.name], out, out.deletes if delta.is_delete else out.inserts, insert_only=insert_only)
    return out


def _is_mixed(delta: Delta, write_ids: SeenWriteIds) -> bool:
    """Return whether a delta may hold rows that must not be seen. A compactor's snapshot takes whole ranges, with aborted write ids."""
    low, high = delta.low, delta.high
    return write_ids.valid_range(low, high) is not Extent.ALL or write_ids.aborted_range(low, high) is not Extent.NONE


def _add(files: Files, directory: Status, out: Selected, kind: list[str], *, insert_only: bool) -> None:
    found = files.list(directory.path)
    if not insert_only:
        for status in found:
            if kind is out.inserts and not status.is_directory and buckets.is_original(status.name):
                _add_originals(files, status, out)
        for status, length in _readable(files, directory, found):
            out.bytes += length
            if length == status.length:
                kind.append(status.path)
            elif length:
                out.growing.append((status.path, length))
        return
    for status in sorted(found):
        if is_hidden(status.name):
            continue
        if status.is_directory:  # such as the parts of a union's branches
            _add(files, status, out, kind, insert_only=True)
        elif status.length:
            kind.append(status.path)
            out.bytes += status.length


def _readable(files: Files, directory: Status, listed: Sequence[Status]) -> list[tuple[Status, int]]:
    """Return the files of buckets and the lengths up to which they are readable.

    A stream removes the side file with the length when it closes a bucket: the directory is listed again when one was removed meanwhile.
    """
    found = {status.name: status for status in listed if not status.is_directory}
    out = []
    for name, status in sorted(found.items()):
        if buckets.of_file(name) is None or not status.length:
            continue
        side = found.get(name + FLUSH_LENGTH)
        try:
            out.append((status, status.length if side is None else _flushed(files, side)))
        except FileError:
            again = files.list(directory.path)
            if side is None or any(each.path == side.path for each in again):
                raise
            return _readable(files, directory, again)
    return out


def _flushed(files: Files, side: Status) -> int:
    """Return the last whole length in a side file. Each has 8 bytes; the last one may be cut short."""
    content = files.read(side.path)
    whole = len(content) // 8 * 8
    return int.from_bytes(content[whole - 8 : whole], "big") if whole else 0


def _add_originals(files: Files, status: Status, out: Selected) -> None:
    if status.is_directory:
        for inner in files.list(status.path):
            if not is_hidden(inner.name):
                _add_originals(files, inner, out)
    elif status.length:
        out.originals.append(status.path)
        out.bytes += status.length


def is_loaded(folder: Folder, path: str) -> bool:
    """Return whether a file of rows alone is in a base or delta of a folder; the folder's own name does not matter."""
    return parse(path[len(folder.location) :].strip("/").rpartition("/")[0]) is not None


def numbered(folder: Folder, paths: Sequence[str]) -> list[Original]:
    """Number the files of each bucket in Hive's order: row numbers continue from one file to the next.

    Files of each base or delta are numbered separately.
    """
    from metastore.acid.orc.orc_files import count_rows

    by_bucket: dict[tuple[str, int], list[str]] = {}
    for path in sorted(paths, key=buckets.hive_order):
        directory = path.split("/")[-2] if is_loaded(folder, path) else ""
        by_bucket.setdefault((directory, buckets.of_original(path.rpartition("/")[2])), []).append(path)
    out = []
    for (directory, bucket), found in by_bucket.items():
        row = 0
        for path in found:
            out.append(Original(path, bucket, row, *_writer(directory)))
            if len(found) > 1:
                row += count_rows(path)
    return out


def _writer(directory: str) -> tuple[int, int]:
    """Return the write id and the statement of a base or delta; zeros for any other directory."""
    found = parse(directory)
    if isinstance(found, Delta):
        return found.low, max(found.statement, 0)
    return (0, 0) if found is None else (found.write_id, 0)
