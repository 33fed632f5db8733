"""Build a table by chained methods with the names of DeltaTable's builder. Each of them but the last returns the builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pyspark.sql.types import DataType, StructType

from metastore.spark.definition.tables import of_schema
from metastore.spark.grammar.columns import columns

T = TypeVar("T")


class TableBuilder(Generic[T]):
    """A table in the making; `create`, `createIfNotExists` or `replace` makes it."""

    def __init__(self, make: Callable[..., T]) -> None:
        """`make` is called as `AcidTable.create` is, without the session."""
        self._make = make
        self._name = ""
        self._columns: list[str] = []
        self._given: dict[str, Any] = {"properties": {}}

    def tableName(self, name: str) -> TableBuilder[T]:  # noqa: N802  # as DeltaTable names it
        """Name the table, as in `AcidTable.forName`."""
        self._name = name
        return self

    def addColumn(  # noqa: N802  # see above
        self,
        colName: str,  # noqa: N803  # see above
        dataType: str | DataType,  # noqa: N803  # see above
        nullable: bool = True,
        comment: str | None = None,
    ) -> TableBuilder[T]:
        """Add a column; a type is Hive's as text, or Spark's. WrongStatement for a text that is not a type."""
        kind = dataType if isinstance(dataType, str) else of_schema(StructType().add(colName, dataType)).columns[0].kind
        said = "" if comment is None else " COMMENT '" + comment.replace("\\", "\\\\").replace("'", "\\'") + "'"
        text = f"`{colName.replace('`', '``')}` {kind}{'' if nullable else ' NOT NULL'}{said}"
        columns(text)
        self._columns.append(text)
        return self

    def addColumns(self, cols: StructType | str) -> TableBuilder[T]:  # noqa: N802  # see above
        """Add columns, as text or a schema of Spark, whose columns that are not nullable become NOT NULL."""
        if isinstance(cols, str):
            columns(cols)
            self._columns.append(cols)
            return self
        for each in cols:
            self.addColumn(each.name, each.dataType, each.nullable, (each.metadata or {}).get("comment"))
        return self

    def partitionedBy(self, *cols: str) -> TableBuilder[T]:  # noqa: N802  # see above
        """Partition by columns that were added, or by further ones with their types: `day date`."""
        self._given["partitioned_by"] = list(cols)
        return self

    def clusterBy(self, *cols: str, buckets: int) -> TableBuilder[T]:  # noqa: N802  # see above
        """Divide rows into buckets by the hash of columns."""
        self._given |= {"clustered_by": list(cols), "buckets": buckets}
        return self

    def property(self, key: str, value: str) -> TableBuilder[T]:
        """Set a property of the table."""
        self._given["properties"][key] = value
        return self

    def comment(self, comment: str) -> TableBuilder[T]:
        """Describe the table."""
        self._given["comment"] = comment
        return self

    def location(self, location: str) -> TableBuilder[T]:
        """Set the location of the table's directory."""
        self._given["location"] = location
        return self

    def insertOnly(self, file_format: str = "orc") -> TableBuilder[T]:  # noqa: N802  # see above
        """Make a table without updates and deletes, of any format."""
        self._given |= {"insert_only": True, "file_format": file_format}
        return self

    def create(self) -> T:
        """Make the table. The errors of `AcidTable.create`."""
        return self._made()

    def createIfNotExists(self) -> T:  # noqa: N802  # see above
        """Make the table, or return the one that is there."""
        return self._made(if_not_exists=True)

    def replace(self) -> T:
        """Put the table in the place of the one that is there, which has the same columns."""
        return self._made(replace=True)

    def _made(self, **how: bool) -> T:
        return self._make(self._name, ", ".join(self._columns), **self._given, **how)
