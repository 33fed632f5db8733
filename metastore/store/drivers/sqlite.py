"""SQLite through Python's own module: it runs each statement at once, and lets one process write at a time."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from metastore.call_time import here
from metastore.errors import MetaError
from metastore.store.drivers.answer import Answer
from metastore.store.drivers.contract import (
    Driver,
    NoSuchTable,
    ReferenceViolation,
    Retry,
    Row,
    Session,
    UniqueViolation,
    Unwritable,
    connected,
    on_conflict,
)

_UNWRITABLE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY")
_UNWRITABLE_TEXTS = ("database or disk is full", "disk I/O error", "attempt to write a readonly database")
"""The texts of the same errors where Python does not give their names."""


class SQLiteDriver(Driver):
    """SQLite in WAL mode. A lock file queues the writers of all processes; SQLite itself would poll."""

    name = "sqlite"
    begin = "BEGIN IMMEDIATE"
    begin_snapshot = ("BEGIN",)
    runs_at_once = True
    error = sqlite3.Error

    def __init__(self, url: URL) -> None:
        from sqlalchemy.dialects import sqlite

        if not url.database or url.database == ":memory:":
            raise MetaError("database URL sqlite: names no file; worker processes share it, so write sqlite:///path/to/file.db")
        self.dialect = sqlite.dialect(paramstyle="named")
        self.path = Path(url.database).absolute()

    def connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False, cached_statements=512)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -16000")
        return connection

    def convert(self, value: list[Any]) -> str:
        return orjson.dumps(value).decode()

    def enqueue(self, cursor: Any, text: str, params: Mapping[str, Any] | None = None) -> Answer:
        answer = Answer()
        cursor.execute(text, params or {})
        answer.settle(cursor.fetchall() if cursor.description else (), cursor.rowcount, cursor.lastrowid)
        return answer

    def sync(self, cursor: Any) -> None:
        pass

    def rollback(self, cursor: Any) -> None:
        if cursor.connection.in_transaction:  # when the disk is full it has ended by itself
            cursor.execute("ROLLBACK")

    @classmethod
    @cache
    def ignoring(cls, table: sa.Table) -> Insert:
        return sa.insert(table).prefix_with("OR IGNORE")

    def insert_many(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], *, pipelined: bool) -> None:
        if len(rows) == 1:
            super().insert_many(session, table, columns, rows, pipelined=pipelined)
        else:
            self._insert(session, table, columns, rows)

    def upsert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self._insert(session, table, columns, rows, on_conflict(table, columns))

    def _insert(self, session: Session, table: sa.Table, columns: Sequence[str], rows: Sequence[Row], otherwise: str = "") -> None:
        names, places = ", ".join(f'"{column}"' for column in columns), ", ".join("?" * len(columns))
        text = f'INSERT INTO "{table.name}" ({names}) VALUES ({places}){otherwise}'
        with session.running(text):
            session.cursor.executemany(text, rows)

    def classify(self, error: BaseException) -> type[Exception] | None:
        code = getattr(error, "sqlite_errorname", "") or ""
        text = str(error)
        if code in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY") or text.startswith("UNIQUE constraint"):
            return UniqueViolation
        if code == "SQLITE_CONSTRAINT_FOREIGNKEY" or text.startswith("FOREIGN KEY constraint"):
            return ReferenceViolation
        if text.startswith("no such table"):
            return NoSuchTable
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or "is locked" in text:
            return Retry
        if code.startswith(_UNWRITABLE) or text.startswith(_UNWRITABLE_TEXTS):
            return Unwritable
        return None

    @contextmanager
    def writing(self) -> Iterator[None]:
        began = perf_counter()
        with self._locked("lock"):
            here.time.waited_for_lock(perf_counter() - began)
            yield

    @contextmanager
    def migrating(self, url: URL) -> Iterator[Any]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked("upgrade"), connected(url, "sqlite") as connection:
            yield connection

    @contextmanager
    def _locked(self, suffix: str) -> Iterator[None]:
        """Hold a lock file beside the database. MetaError where it can not be opened."""
        path = f"{self.path}.{suffix}"
        try:
            file = Path(path).open("wb")  # noqa: SIM115 # errors while it is open have other reasons
        except OSError as error:
            raise MetaError(
                f"database sqlite takes no changes: its lock file {path} can not be opened: {error.strerror}; nothing was changed. See "
                "that the folder may be written and that the server may open more files"
            ) from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
