"""Run the migrations on the connection that `metastore.store.core.migrate` hands over.

MariaDB and MySQL commit with each change of the schema, so they keep the operations of a migration that broke off. There a migration is run
again from its beginning, and each operation is done only where its effect is not there yet. Changes of rows have to give the same result
when they are done twice: a migration that moves rows deletes them from the old table before its next operation, and first looks whether
that table is still there.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context
from alembic.ddl.mysql import MySQLImpl

from metastore.store.core.all_tables import metadata


class Repeatable(MySQLImpl):
    """The operations on MariaDB and MySQL; an index on a table that is gone is no more to be made or dropped."""

    __dialect__ = "mysql"

    def _has(self, table: str) -> bool:
        return sa.inspect(self.connection).has_table(table)

    def _has_column(self, table: str, column: str) -> bool:
        return column in {each["name"] for each in sa.inspect(self.connection).get_columns(table)}

    def _has_index(self, index: sa.Index) -> bool:
        return index.name in {each["name"] for each in sa.inspect(self.connection).get_indexes(index.table.name)}

    def create_table(self, table: sa.Table, **options: Any) -> None:
        if not self._has(table.name):
            super().create_table(table, **options)

    def drop_table(self, table: sa.Table, **options: Any) -> None:
        if self._has(table.name):
            super().drop_table(table, **options)

    def create_index(self, index: sa.Index, **options: Any) -> None:
        if self._has(index.table.name) and not self._has_index(index):
            super().create_index(index, **options)

    def drop_index(self, index: sa.Index, **options: Any) -> None:
        if self._has(index.table.name) and self._has_index(index):
            super().drop_index(index, **options)

    def add_column(self, table_name: str, column: sa.Column[Any], **options: Any) -> None:
        if not self._has_column(table_name, column.name):
            super().add_column(table_name, column, **options)

    def drop_column(self, table_name: str, column: sa.Column[Any], **options: Any) -> None:
        if self._has_column(table_name, column.name):
            super().drop_column(table_name, column, **options)


given = context.config.attributes
context.configure(connection=given["connection"], target_metadata=metadata, on_version_apply=given.get("reached"))
with context.begin_transaction():
    context.run_migrations()
