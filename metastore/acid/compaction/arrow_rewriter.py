"""Read and write the files of a compaction with Arrow, in the process that does it: the server's own workers, without Spark.

An entry that Arrow can not copy faithfully, or not within the memory of the process, is put back for a worker on Spark.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyorc

from metastore.acid.buckets.buckets import Bucket, of_original
from metastore.acid.compaction.compacting import DELETES, Cancelled, CompactionJob, PutBack, Stopped, Written
from metastore.acid.compaction.watch import Watch
from metastore.acid.files import FileError, Files, FsspecFiles, open_path
from metastore.acid.folders.misplaced import misplaced, named_in
from metastore.acid.folders.placing import staging
from metastore.acid.folders.selecting import Selected
from metastore.acid.orc.orc_files import open_orc
from metastore.acid.orc.orc_footer import TIMESTAMPS, footer_of
from metastore.acid.rewriting.event_file import OrcOptions
from metastore.acid.rewriting.rewriting import CanNotCopy, Form, rewrite_deletes, rewrite_plain, rewrite_rows
from metastore.acid.rewriting.row_copying import copy_rows
from metastore.acid.transactions import Transaction
from metastore.acid.values.null_keys import NullKeys

EXPANDED = 8
"""The memory of a stripe that is read and copied, as a multiple of its bytes in the file."""
ROWS_OF_A_FILE = 256 << 20
"""Bytes of insert-only files that become one file."""
OF_A_DELETE = 100
"""Bytes that a delete event takes while it is looked up or sorted."""


class ArrowRewriter:
    """A `Rewriter` (`acid.compaction.compacting`) with Arrow. Methods raise PutBack, FileError, OSError, and the errors of `watch`."""

    def __init__(self, txn: Transaction, watch: Watch) -> None:
        self.txn = txn
        self.files: Files = FsspecFiles()
        self._watch = watch
        watch.start()

    def close(self) -> None:
        """End the watch."""
        self._watch.stop()

    def named(self, path: str) -> Collection[int]:
        """Return the buckets that the rows of a file name, by reading them."""
        return named_in(path)

    def write_buckets(self, job: CompactionJob, selected: Selected, part: str) -> Written:
        """Write the events of each bucket, one after the other."""
        is_deletes = part == DELETES
        write = rewrite_deletes if is_deletes else _rewritten
        out: Written = []
        with _left_to_spark():
            for bucket in selected.by_bucket(misplaced(self.files, selected, named_in)):
                files = [*bucket.inserts, *((original.path, None) for original in bucket.originals)]
                form = self._form(job, part, files, gone=bucket.deletes, is_deletes=is_deletes)
                out.append((write(form, bucket, str(bucket.number)), bucket.number))
                pa.default_memory_pool().release_unused()
        return out

    def write_rows(self, job: CompactionJob, selected: Selected) -> Written:
        """Write the rows of ORC files, one bucket after the other; rows without buckets get files of about `ROWS_OF_A_FILE` bytes."""
        table, paths = job.table, [*selected.originals, *selected.inserts]
        library = table.table.sd.serdeInfo.serializationLib or ""
        if "orc" not in library.lower():
            raise PutBack(f"{table.full_name} is insert-only, and in the format of {library} instead of ORC")
        groups: dict[int, list[str]] = {}
        for place, path in enumerate(paths):
            number = of_original(path.rpartition("/")[2]) if table.buckets else place % (selected.bytes // ROWS_OF_A_FILE + 1)
            groups.setdefault(number, []).append(path)
        out: Written = []
        with _left_to_spark():
            for number, found in groups.items():
                form = self._form(job, "rows", [(path, None) for path in found])
                out.append((rewrite_plain(form, found, str(number)), number))
                pa.default_memory_pool().release_unused()
        return out

    def _form(
        self, job: CompactionJob, part: str, files: list[tuple[str, int | None]], *, gone: Sequence[str] = (), is_deletes: bool = False
    ) -> Form:
        """Read the ends of files, and return the form in which to write their rows. PutBack where that would take too much memory."""
        zones: set[str] = set()
        largest = 0
        for path, length in files:
            self._watch.check()
            file = open_orc(path, length)
            footer = footer_of(file)
            if total := sum(footer.stripes):
                system, inner = open_path(path)
                largest = max(largest, (length or system.size(inner)) * max(footer.stripes) // total)
                self._watch.expect(total)
                if any(column.kind in TIMESTAMPS for column in footer.columns):
                    zones |= _zones_of(path, length)
        deleted = sum(open_orc(path).nrows for path in gone)
        if is_deletes:
            self._watch.expect(deleted)
        self._watch.check_memory(largest * EXPANDED + deleted * OF_A_DELETE, f"{job.table.full_name} {job.folder.name}".rstrip())
        folder = staging(job.transaction, job.table, part)
        self.files.make(folder)
        columns = [(column.name.lower(), column.type) for column in job.table.table.sd.cols]
        options = OrcOptions.of(job.table.parameters)
        return Form(columns, options, job.snapshot.write_ids, tuple(sorted(zones)) or ("UTC",), folder, self._watch.passed)


@contextmanager
def _left_to_spark() -> Iterator[None]:
    """Raise PutBack for rows that Python can not copy. FileError, OSError and the errors of `watch` are raised unchanged."""
    try:
        yield
    except (PutBack, Stopped, Cancelled, FileError, OSError):
        raise
    except CanNotCopy as error:
        raise PutBack(str(error)) from error
    except Exception as error:  # Spark may be able to do more than Python
        raise PutBack(f"{type(error).__name__}: {error}") from error


def _rewritten(form: Form, bucket: Bucket, name: str) -> str:
    try:
        return rewrite_rows(form, bucket, name)
    except NullKeys:
        return copy_rows(form, bucket, name)


def _zones_of(path: str, length: int | None) -> set[str]:
    """Return the zones in which a file's times were written."""
    system, inner = open_path(path)
    with system.open(inner, "rb") as stream:
        reader = pyorc.Reader(stream if length is None else io.BytesIO(stream.read(length)))
        return {reader.read_stripe(number).writer_timezone or "UTC" for number in range(reader.num_of_stripes)}
