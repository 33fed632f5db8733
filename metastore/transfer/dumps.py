"""Read and write dumps: a file with a line of JSON for each record, compressed with zstd.

The first line names the kind of file and the version of the format. The last one has the number of records of each kind and a hash of all
lines before it, which show that the file was not cut or changed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from os import fspath
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

import metastore
from metastore.errors import InvalidInput
from metastore.transfer.contract import Changes
from metastore.transfer.records import KINDS, Key, Record, line, record_of
from metastore.transfer.selection import EVERYTHING, Selection

FORMAT = "metastore dump"
VERSION = 1
"""The version of the format. It is raised when older servers would misread a dump."""
CHUNK = 1 << 20
"""Bytes that are read at once."""
REPORTED = 5000
"""Records between two reports of the progress."""


class DumpWriter:
    """A file as a target of records. It gets its name only when it is complete."""

    def __init__(self, path: Path, wrote: Callable[[int], None] = lambda _: None) -> None:
        self.path = path
        self.name = fspath(path)
        self.skipped: list[str] = []
        self.wrote = wrote
        self._unfinished = path.with_name(f"{path.name}.unfinished")

    def close(self) -> None:
        """Remove an unfinished file."""
        self._unfinished.unlink(missing_ok=True)

    def begin(self, selection: Selection = EVERYTHING, *, resume: bool = False) -> frozenset[Key]:  # noqa: ARG002  # another needs it
        """Check that the file does not exist. InvalidInput, also for a resumed move: the dump would be of two moments."""
        if resume:
            raise InvalidInput(f"dump {self.name}: a dump can not be resumed, since it is of one moment; write it again")
        if self.path.exists():
            raise InvalidInput(f"dump {self.name} is there already: name another file, or remove it")
        return frozenset()

    def write(self, records: Iterable[Record]) -> None:
        """Write all records of a dump. InvalidInput when the file can not be written."""
        try:
            with pa.OSFile(fspath(self._unfinished), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
                self._write(stream, records)
            self._unfinished.replace(self.path)
        except OSError as error:
            raise InvalidInput(f"dump {self.name} can not be written: {error.strerror or error}; see that its folder has room") from error

    def _write(self, stream: Any, records: Iterable[Record]) -> None:
        hash_, counts = blake2b(digest_size=32), Counter[str]()

        def put(text: bytes) -> None:
            hash_.update(text)
            stream.write(text)

        head = {"format": FORMAT, "version": VERSION, "made_by": f"metastore {metastore.__version__}", "time": int(time.time())}
        put(orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE))
        reported = 0
        for number, record in enumerate(records, 1):
            put(line(record))
            counts[record.kind] += 1
            if number % REPORTED == 0:
                self.wrote(REPORTED)
                reported = number
        self.wrote(counts.total() - reported)
        stream.write(orjson.dumps({"records": counts, "hash": hash_.hexdigest()}, option=orjson.OPT_APPEND_NEWLINE))


class DumpReader:
    """A file as a source of records."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = fspath(path)
        self.skipped: list[str] = []
        self.kinds = frozenset(KINDS)
        self.seen: Callable[[Record], Record] | None = None
        self._counts: dict[str, int] | None = None

    def close(self) -> None:
        """Do nothing: a file is open only while it is read."""

    def partitions(self) -> int:
        """Count the partitions: the whole file is read for it, and checked."""
        return self.check().get("partition", 0)

    def check(self) -> dict[str, int]:
        """Read the whole file once; return its number of records of each kind. InvalidInput if it is not a dump, or incomplete."""
        if self._counts is None:
            for _ in self._lines():
                pass
        assert self._counts is not None
        return self._counts

    def tables(self, selection: Selection) -> set[Key]:
        """Return the names of the tables: the whole file is read for it."""
        return {record.key for record in self.records(selection._replace(kinds=frozenset({"table"})))}

    def changes(self, after: int) -> Changes | None:  # noqa: ARG002  # others have a log
        """Return None: a dump has no notification log."""
        return None

    def records(self, selection: Selection) -> Iterator[Record]:
        """Yield the records that are wanted. InvalidInput as in `check`: for an incomplete file it is raised only at the end."""
        for number, text in enumerate(self._lines(), 2):
            try:
                record = record_of(text)
                wanted = record.kind in KINDS and selection.wants_key(record.kind, record.key)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise InvalidInput(f"dump {self.name}: line {number} is not a record: {error}") from error
            if record.kind not in KINDS:
                raise InvalidInput(f"dump {self.name}: line {number} is of the kind {record.kind!r}, which this version does not know")
            if wanted:
                yield record

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines of the records; after the last one the trailer is compared with the lines."""
        hash_, number, last = blake2b(digest_size=32), 0, b""
        for text in self._texts():
            if number == 1:
                self._check_head(last)
            elif number > 1:
                yield last
            hash_.update(last)
            last = text
            number += 1
        if number < 2:
            raise self._cut()
        try:
            trailer = orjson.loads(last)
            counts, expected = trailer["records"], trailer["hash"]
        except (ValueError, KeyError, TypeError):
            raise self._cut() from None
        if expected != hash_.hexdigest() or sum(counts.values()) != number - 2:
            raise self._cut()
        self._counts = counts

    def _texts(self) -> Iterator[bytes]:
        try:
            with pa.OSFile(self.name, "rb") as file, pa.CompressedInputStream(file, "zstd") as stream:
                rest = b""
                while chunk := stream.read(CHUNK):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for each in lines:
                        yield each + b"\n"
                if rest:
                    raise self._cut()
        except FileNotFoundError:
            raise InvalidInput(f"dump {self.name} does not exist: name a file of `metastore dump`") from None
        except OSError as error:
            raise InvalidInput(f"dump {self.name} can not be read: {error}; it is not a dump, or was cut or changed") from error

    def _check_head(self, text: bytes) -> None:
        try:
            head = orjson.loads(text)
            is_ours, version = head["format"] == FORMAT, head["version"]
        except (ValueError, KeyError, TypeError):
            is_ours, version = False, None
        if not is_ours:
            raise InvalidInput(f"dump {self.name} is not a dump of a metastore")
        if version != VERSION:
            raise InvalidInput(
                f"dump {self.name} has version {version} of the format, this server reads {VERSION}: use the server version that wrote it"
            )

    def _cut(self) -> InvalidInput:
        return InvalidInput(f"dump {self.name} was cut or changed: its end or its hash is wrong; take another copy")
