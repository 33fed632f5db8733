"""The state of a session of Spark for SQL: its transaction, its temporary views over transactional tables, and its names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from metastore import idl
from metastore.client import Client
from metastore.idl import ClientCapabilities, ClientCapability, GetTablesRequest
from metastore.rules.catalog.table_kinds import is_transactional
from metastore.spark.dialect.jvm import Doors
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import AcidTableInfo, metastore_uri
from metastore.spark.transaction.spark_transaction import SparkTransaction

PLAIN_SQL, PLAIN_TABLE = SparkSession.sql, SparkSession.table
"""Spark's own methods, even after `enable` has replaced them."""
NO_COLUMNS = StructType([])
KNOWN = ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES])
CATALOG = "spark_catalog"
_KEPT = "_metastore_sql"
"""The attribute of a session of PySpark that holds its SqlSession."""


@dataclass(frozen=True)
class View:
    """A view as its text. Unqualified names in it belong to `database`; in a temporary view, where it is None, they are temporary views."""

    name: str
    text: str
    columns: tuple[str, ...]
    database: str | None = None
    number: int = 0
    """The number of a temporary view. A later view of its name has another number."""


class SqlSession:
    """The state of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        metastore_uri(spark)
        self.doors = Doors(spark)
        self.key = self.doors.key()
        self.transaction: SparkTransaction | None = None
        self.views: dict[tuple[str, ...], View] = {}

    @classmethod
    def of(cls, spark: SparkSession) -> SqlSession:
        """Return the state of a session. ValueError where it has no metastore."""
        found: SqlSession | None = spark.__dict__.get(_KEPT)
        if found is not None and _SESSIONS.get(found.key) is found:
            return found
        made = cls(spark)
        kept = _SESSIONS.get(made.key)  # of another object of Python for the same session
        if kept is not None:
            made.transaction, made.views = kept.transaction, kept.views
        spark.__dict__[_KEPT] = _SESSIONS[made.key] = made
        return made

    @property
    def uri(self) -> str:
        """The address of the metastore, which a session's configuration may change. ValueError."""
        return metastore_uri(self.spark)

    @property
    def database(self) -> str:
        """The current database."""
        return str(self.spark.catalog.currentDatabase()).lower()

    def nothing(self) -> DataFrame:
        """Return the empty answer of a statement that has no rows."""
        return self.spark.createDataFrame([], NO_COLUMNS)

    def plain(self, text: str, args: Any = None) -> DataFrame:
        """Let Spark run a statement unchanged."""
        return PLAIN_SQL(self.spark, text) if args is None else PLAIN_SQL(self.spark, text, args)

    @contextmanager
    def writing(self, *, steps: int = 1) -> Iterator[SparkTransaction]:
        """Yield the session's transaction, or one for this statement alone, which the end commits and an error aborts.

        A statement of several `steps` that fails may have done some of them: then the session's transaction can only be rolled back.
        """
        if self.transaction is not None:
            try:
                yield self.transaction
            except Exception as error:
                if steps > 1:
                    self.transaction.txn.spoil(error)
                raise
            finally:
                self.transaction.pin([])
            return
        transaction = SparkTransaction(self.spark, self.uri)
        with transaction.txn:
            yield transaction

    def outside(self, what: str) -> None:
        """Raise WrongStatement within a transaction: the metastore does not undo changes of definitions with a transaction."""
        if self.transaction is not None:
            raise WrongStatement(f"{what} is not possible within a transaction, which could not undo it: COMMIT or ROLLBACK first")

    def begin(self) -> None:
        """Open a transaction for the statements that follow. WrongStatement within one."""
        self.outside("START TRANSACTION")
        self.transaction = SparkTransaction(self.spark, self.uri)

    def end(self, *, commit: bool) -> None:
        """Commit or abort the transaction. WrongStatement without one; TransactionLost, TxnAbortedException where the commit fails."""
        transaction, self.transaction = self.transaction, None
        if transaction is None:
            raise WrongStatement(f"no transaction is open to {'COMMIT' if commit else 'ROLLBACK'}: START TRANSACTION begins one")
        if commit:
            transaction.txn.commit()
        else:
            transaction.txn.abort()


_SESSIONS: dict[str, SqlSession] = {}


class Names:
    """The tables and views that the names of one statement mean; each name is looked up once."""

    def __init__(self, session: SqlSession, client: Client) -> None:
        self._session = session
        self._client = client
        self._found: dict[tuple[str, ...], AcidTableInfo | View | None] = {}
        self._database: str | None = None

    @property
    def client(self) -> Client:
        """The connection to the metastore."""
        return self._client

    @property
    def database(self) -> str:
        """The current database."""
        if self._database is None:
            self._database = self._session.database
        return self._database

    def find(self, names: Sequence[str], database: str | None = None) -> AcidTableInfo | View | None:
        """Return the table or view of a name, None for a name that only Spark knows; `database` is for unqualified names."""
        if database is not None and len(names) == 1:
            names = [database, *names]
        key = tuple(name.lower() for name in names)
        if key not in self._found:
            self._found[key] = self._look_up(key)
        return self._found[key]

    def may_be_ours(self, names: Sequence[str]) -> bool:
        """Return whether a name means a transactional table, or a view, which may read one."""
        found = self.find(names)
        return isinstance(found, View) or (found is not None and is_transactional(found.table))

    @property
    def plain(self) -> set[str]:
        """The tables, `database.table`, that were found not to be transactional."""
        found = (each for each in self._found.values() if isinstance(each, AcidTableInfo))
        return {each.full_name for each in found if not is_transactional(each.table)}

    def transactional(self, names: Sequence[str]) -> AcidTableInfo | None:
        """Return the transactional table of a name, None for anything else."""
        found = self.find(names)
        return found if isinstance(found, AcidTableInfo) and is_transactional(found.table) else None

    def place(self, names: Sequence[str]) -> tuple[str, str] | None:
        """Return database and table that a name would mean in the metastore, None where it belongs to another catalog. Sends no request."""
        parts = [name.lower() for name in names]
        spark = self._session.spark
        if len(parts) > 1 and parts[0] == CATALOG:
            parts = [CATALOG, *parts[1:]] if len(parts) == 3 else [CATALOG, self.database, parts[1]]
        elif len(parts) > 2 or str(spark.catalog.currentCatalog()) != CATALOG or self._is_elsewhere(parts[:-1]):
            return None
        return (parts[-2] if len(parts) > 1 else self.database), parts[-1]

    def tables(self, database: Sequence[str] | None, pattern: str) -> list[AcidTableInfo] | None:
        """Return the tables and views of a database, by a pattern such as `a*|b*`; None where it is another catalog's, or none of them is
        transactional.
        """
        place = self.place([*(database or [self.database]), ""])
        if place is None:
            return None
        names = self._client.get_tables(place[0], pattern)
        request = GetTablesRequest(dbName=place[0], tblNames=names, capabilities=KNOWN)
        found = [AcidTableInfo(table) for table in self._client.get_table_objects_by_name_req(request).tables] if names else []
        return found if any(is_transactional(info.table) for info in found) else None

    def _is_elsewhere(self, database: Sequence[str]) -> bool:
        """Return whether the qualifier of a table's name is another catalog, or the database of global temporary views."""
        conf = self._session.spark.conf
        return any(name == "global_temp" or conf.get(f"spark.sql.catalog.{name}", None) for name in database)

    def _look_up(self, key: tuple[str, ...]) -> AcidTableInfo | View | None:
        if (number := self._session.doors.temporary_view(key)) is not None:
            view = self._session.views.get(key)
            return view if view is not None and view.number == number else None
        place = self.place(key)
        if place is None:
            return None
        try:
            info = AcidTableInfo.read(self._client, *place)
        except (idl.NoSuchObjectException, idl.UnknownDBException):
            return None
        if info.table.tableType != "VIRTUAL_VIEW":
            return info
        return _view(info)


def _view(info: AcidTableInfo) -> View:
    """Read a view of the metastore, Hive's or Spark's."""
    said = info.parameters
    count = int(said.get("view.catalogAndNamespace.numParts") or 0)
    database = said.get(f"view.catalogAndNamespace.part.{count - 1}") if count > 1 else None
    text = info.table.viewExpandedText or info.table.viewOriginalText
    return View(info.full_name, text, tuple(column.name for column in info.table.sd.cols), (database or info.database).lower())
