"""The mapping from rows of this server's schema to records: the table of a kind, the columns of its key, and columns of JSON. Runs no
statement.

Tables, their descriptors and partitions have modules of their own (`tables`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa

from metastore.store.schema import engines, indexes, model, registry, workloads

DATABASE, TABLE = model.databases, model.tables
OTHER_TABLE, OTHER_DATABASE = model.tables.alias("other_table"), model.databases.alias("other_database")
TABLE_DATABASE = model.databases.alias("table_database")
Source = sa.FromClause
Expression = sa.ColumnElement[Any]


class Stored(NamedTuple):
    """A kind whose records are rows of one table."""

    kind: str
    table: sa.Table
    key: tuple[str, ...]
    """Columns of the row that are the last parts of the key."""
    owner: str = ""
    """The kind of owner that the first parts of the key name: database, table, schema, or any for privileges. The row has its number."""
    json: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    refers: str = ""
    """The column with the number of another table; the body has the table's names."""
    derived: tuple[str, ...] = ()
    """Columns that are derived from others."""
    is_kept: bool = False
    """Whether existing rows are changed in place, since other rows refer to them."""

    @property
    def owner_columns(self) -> tuple[str, ...]:
        """Return the columns with the owner's number."""
        of = {"": (), "database": ("database_id",), "table": ("table_id",), "schema": ("schema_id",)}
        return of.get(self.owner, ("database_id", "table_id", "partition_id", "connector_name"))

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the columns that the body has."""
        without = {*self.key, *self.owner_columns, *self.left_out, *self.derived, self.refers, "" if "id" in self.key else "id"}
        return tuple(str(column.name) for column in self.table.c if column.name not in without)  # SQLAlchemy has a class of its own

    def select(self) -> tuple[sa.Select[Any], tuple[Expression, ...]]:
        """Return the query of the key's parts, the body's fields and further columns; and the columns by which pages are separated."""
        source, names = self._owned()
        columns = [*names, *(self.table.c[name] for name in (*self.key, *self.fields))]
        if self.refers:
            source = source.outerjoin(OTHER_TABLE, self.table.c[self.refers] == OTHER_TABLE.c.id).outerjoin(
                OTHER_DATABASE, OTHER_TABLE.c.database_id == OTHER_DATABASE.c.id
            )
            columns += [OTHER_DATABASE.c.catalog, OTHER_DATABASE.c.name, OTHER_TABLE.c.name]
        paging = tuple(self.table.primary_key.columns)
        labelled = [column.label(f"c{number}") for number, column in enumerate([*columns, *paging])]
        return sa.select(*labelled).select_from(source), paging

    def _owned(self) -> tuple[Source, tuple[Expression, ...]]:
        table = self.table
        if self.owner == "database":
            return table.join(DATABASE, table.c.database_id == DATABASE.c.id), (DATABASE.c.catalog, DATABASE.c.name)
        if self.owner == "table":
            source = table.join(TABLE, table.c.table_id == TABLE.c.id).join(DATABASE, TABLE.c.database_id == DATABASE.c.id)
            return source, (DATABASE.c.catalog, DATABASE.c.name, TABLE.c.name)
        if self.owner == "schema":
            schemas = registry.registry_schemas
            source = table.join(schemas, table.c.schema_id == schemas.c.id).join(DATABASE, schemas.c.database_id == DATABASE.c.id)
            return source, (DATABASE.c.catalog, DATABASE.c.name, schemas.c.name)
        if self.owner == "any":
            source = (
                table.outerjoin(DATABASE, table.c.database_id == DATABASE.c.id)
                .outerjoin(TABLE, table.c.table_id == TABLE.c.id)
                .outerjoin(TABLE_DATABASE, TABLE.c.database_id == TABLE_DATABASE.c.id)
                .outerjoin(model.partitions, table.c.partition_id == model.partitions.c.id)
            )
            return source, (
                table.c.object_type,
                sa.func.coalesce(DATABASE.c.catalog, TABLE_DATABASE.c.catalog),
                sa.func.coalesce(DATABASE.c.name, TABLE_DATABASE.c.name),
                sa.func.coalesce(TABLE.c.name, table.c.connector_name),
                model.partitions.c.name,
            )
        return table, ()


_ID = ("id",)
STORED = (
    Stored("server", model.server_info, ("name",)),
    Stored("role", model.roles, ("name",), is_kept=True),
    Stored("catalog", model.catalogs, ("name",), is_kept=True),
    Stored("connector", engines.data_connectors, ("name",), json=("parameters",)),
    Stored(
        "database", model.databases, ("catalog", "name"), json=("parameters",), left_out=_ID, derived=("place", "managed_place"),
        is_kept=True,
    ),
    Stored("constraint", model.constraints, ("name",), "table", json=("body",), refers="parent_table_id"),
    Stored("index", indexes.indexes, ("name",), "table", json=("body",), refers="index_table_id"),
    Stored("function", model.functions, ("name",), "database", json=("resources",)),
    Stored("procedure", engines.procedures, ("name",), "database"),
    Stored("package", engines.packages, ("name",), "database"),
    Stored("type", model.types, ("name",), json=("body",)),
    Stored("role_grant", model.role_grants, ("role_name", "principal_type", "principal_name")),
    Stored(
        "privilege", model.privileges,
        ("column_name", "principal_type", "principal_name", "privilege", "grantor_type", "grantor", "authorizer"), "any",
        left_out=("object_type",),
    ),
    Stored("location_grant", model.location_grants, ("principal_type", "principal_name", "location")),
    Stored("credential", model.credentials, ("user_name", "kind", "hash"), json=("groups",)),
    Stored("resource_plan", workloads.resource_plans, ("namespace", "name"), json=("body",)),
    Stored("schema", registry.registry_schemas, ("name",), "database"),
    Stored("schema_version", registry.registry_versions, ("version",), "schema", json=("serde",)),
    Stored("serde", registry.serdes, ("name",), json=("serde",)),
    Stored("scheduled_query", engines.scheduled_queries, ("namespace", "name"), left_out=("execution_id",)),
    Stored("property", engines.properties, ("map", "name")),
    Stored("transaction", model.transactions, ("id",), left_out=("heartbeat_ms", "holds")),
    Stored("replicated_transaction", model.replicated_transactions, ("policy", "source_id")),
    Stored(
        "transaction_component", model.transaction_components,
        ("transaction_id", "catalog", "database", "table", "partition", "operation", "write_id"),
    ),
    Stored("write_id_position", model.write_id_counters, ("catalog", "database", "table")),
    Stored("write_id", model.write_ids, ("catalog", "database", "table", "write_id")),
    Stored("min_history", model.min_history, ("transaction_id", "catalog", "database", "table")),
    Stored("compaction", model.compactions, ("id",)),
)  # fmt: skip
"""In the order of `records.KINDS`; a position is a row of `counters` and has no place here."""
BY_KIND = {each.kind: each for each in STORED}
