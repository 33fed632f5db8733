"""Constraints: declare, list, drop. Data is never checked against them.

A request has one struct for each column of a constraint (`SQLPrimaryKey` and its like). Source: Hive's ObjectStore.add*.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metastore.errors import InvalidObject, MetaError, MetastoreError
from metastore.idl import (
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Table,
)
from metastore.listeners.events import AddConstraints, DropConstraint
from metastore.rules.catalog.columns import ColumnsDifference, renamed_in
from metastore.rules.names import normalize
from metastore.service.call.context import Call
from metastore.service.call.names import TableName, table_name
from metastore.service.catalog.tables.tables import find_table
from metastore.service.changes.change import change
from metastore.store.catalog import constraints as rows
from metastore.store.catalog.constraints import Constraint
from metastore.store.catalog.tables import tables
from metastore.store.core.database import Session

PRIMARY, FOREIGN, UNIQUE, NOT_NULL, DEFAULT, CHECK = "primary", "foreign", "unique", "notnull", "default", "check"
KIND: dict[type[Any], str] = {
    SQLPrimaryKey: PRIMARY,
    SQLForeignKey: FOREIGN,
    SQLUniqueConstraint: UNIQUE,
    SQLNotNullConstraint: NOT_NULL,
    SQLDefaultConstraint: DEFAULT,
    SQLCheckConstraint: CHECK,
}
NAME_FIELD = {PRIMARY: "pk_name", FOREIGN: "fk_name", UNIQUE: "uk_name", NOT_NULL: "nn_name", DEFAULT: "dc_name", CHECK: "dc_name"}
PREFIX = {PRIMARY: "pk", FOREIGN: "fk", UNIQUE: "uk", NOT_NULL: "nn", DEFAULT: "dc", CHECK: "dc"}
KEYS = (PRIMARY, FOREIGN, UNIQUE)
"""The kinds that may have several columns."""


def table_of(call: Call, structs: Sequence[Any]) -> TableName:
    """Return the table that the structs of a request constrain. MetaError for several tables or none."""
    names = set()
    for struct in structs:
        foreign = isinstance(struct, SQLForeignKey)
        database, table = (struct.fktable_db, struct.fktable_name) if foreign else (struct.table_db, struct.table_name)
        names.add(table_name(database, table, struct.catName, call.config.default_catalog))
    if len(names) != 1:
        raise MetaError(f"Constraints of {len(names)} tables in one request: send those of one table")
    return names.pop()


def add(call: Call, structs: Sequence[Any]) -> None:
    """Add constraints to a table. InvalidObject for a missing table or column or a taken name; MetaError for keys that do not fit."""
    if not structs:
        return
    name = table_of(call, structs)
    table = _table(call, name)
    with change(call, AddConstraints(client=call.info, table=table, constraints=structs)) as current:

        def work(session: Session) -> None:
            if tables.lock(session, *name) != table.id:
                raise InvalidObject(f"Parent table not found: {name}")
            insert(call, session, table, structs)

        current.write(work)


def _table(call: Call, name: TableName) -> Table:
    try:
        return find_table(call, name)
    except MetastoreError as error:
        raise InvalidObject(f"Parent table not found: {name}") from error


def insert(call: Call, session: Session, table: Table, constraints: Sequence[Any]) -> None:
    """Add constraints to a table whose row this transaction has locked or made. Errors as in `add`."""
    assert table.id is not None
    there = rows.find(session, table_id=table.id)
    names = {constraint.name for constraint in there}
    new: list[tuple[Constraint, int | None]] = []
    for group in _groups(constraints):
        kind = KIND[type(group[0])]
        given = getattr(group[0], NAME_FIELD[kind])
        name = normalize(given) if given else _generated(kind)
        if kind == PRIMARY and any(each.kind == PRIMARY for each in (*there, *(added for added, _ in new))):
            raise MetaError(f" Primary key already exists for: {table.catName}.{table.dbName}.{table.tableName}")
        if name in names:
            raise InvalidObject(f"Constraint name already exists: {name}")
        names.add(name)
        body = _body(table, kind, group)
        parent = None
        if kind == FOREIGN:
            known = [*there, *(added for added, _ in new)]
            parent, body["parent_columns"], body["parent_key"] = _referenced(call, session, table, group, known)
        new.append((Constraint(kind, name, body), parent))
    rows.insert(session, table.id, new)


def _groups(structs: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the structs of each constraint. A key's structs end before the next one with number 1 or another name."""
    group: list[Any] = []
    for struct in structs:
        kind = KIND[type(struct)]
        if group:
            before = group[-1]
            same = type(before) is type(struct) and getattr(before, NAME_FIELD[kind]) == getattr(struct, NAME_FIELD[kind])
            if kind not in KEYS or not same or struct.key_seq in (None, 0, 1):
                yield group
                group = []
        group.append(struct)
    if group:
        yield group


def _generated(kind: str) -> str:
    return f"{PREFIX[kind]}_{secrets.randbelow(10**9)}_{time.time_ns() // 1_000_000}_0"


def _columns(table: Table) -> dict[str, str]:
    """Return the types of a table's columns, partition keys included, by name."""
    fields = [*(table.sd.cols if table.sd is not None else ()), *(table.partitionKeys or ())]
    return {normalize(field.name): field.type for field in fields}


def _body(table: Table, kind: str, group: Sequence[Any]) -> dict[str, Any]:
    known = _columns(table)
    columns: list[str | None] = []
    for struct in group:
        column = struct.fkcolumn_name if kind == FOREIGN else struct.column_name
        if column is None and kind == CHECK:
            columns.append(None)
            continue
        if column is None or normalize(column) not in known:
            raise InvalidObject(f"Parent column not found: {column} in {table.catName}.{table.dbName}.{table.tableName}")
        columns.append(normalize(column))
    first = group[0]
    body: dict[str, Any] = {
        "columns": columns,
        "enable": bool(first.enable_cstr),
        "validate": bool(first.validate_cstr),
        "rely": bool(first.rely_cstr),
    }
    if kind == DEFAULT:
        body["value"] = first.default_value
    if kind == CHECK:
        body["value"] = first.check_expression
    if kind == FOREIGN:
        body["update_rule"], body["delete_rule"] = first.update_rule or 0, first.delete_rule or 0
    return body


def _referenced(
    call: Call, session: Session, table: Table, group: Sequence[SQLForeignKey], own: Sequence[Constraint]
) -> tuple[int, list[str], str]:
    """Return the key of the table that a foreign key refers to, its columns there, and the name of the primary or unique key there.

    `own` are the constraints of the table itself, for a key that refers to its own table.
    """
    first = group[0]
    name = table_name(first.pktable_db, first.pktable_name, table.catName, call.config.default_catalog)
    parent, key = _parent(call, session, table, name)
    wanted = [normalize(struct.pkcolumn_name or "") for struct in group]
    differing = _differing(name, group, wanted, _columns(parent), _columns(table))
    keys = [each for each in (own if parent is table else rows.find(session, table_id=key)) if each.kind in (PRIMARY, UNIQUE)]
    for each in keys:
        if not differing and sorted(each.body["columns"]) == sorted(wanted):
            return key, wanted, each.name
    possible = [", ".join(each.body["columns"]) for each in keys]
    raise MetaError(
        f"Foreign key of {table.tableName} references columns {', '.join(wanted)} of {name}, but no primary or unique key there has "
        f"these columns with the same types. Keys there: {possible or 'none'}. Types that differ: {differing or 'none'}"
    )


def _parent(call: Call, session: Session, table: Table, name: TableName) -> tuple[Table, int]:
    """Lock the table that a foreign key refers to, unless it is the key's own table; return it and its key. InvalidObject."""
    itself = name == (table.catName, table.dbName, table.tableName)
    found = table if itself else None
    if not itself and tables.share(session, *name) is not None:
        found = tables.find(session, *name)
    if found is None or found.id is None:
        raise InvalidObject(f"Parent table not found: {name}. A foreign key can not refer to a table of another catalog")
    return found, found.id


def _differing(
    name: TableName, group: Sequence[SQLForeignKey], wanted: Sequence[str], types: Mapping[str, str], own_types: Mapping[str, str]
) -> list[str]:
    """Return texts on the columns of a foreign key whose types differ from the referenced columns'. InvalidObject for a missing column."""
    for column in wanted:
        if column not in types:
            raise InvalidObject(f"Parent column not found: {column} in {name}")
    return [
        f"{struct.fkcolumn_name} {own_types[normalize(struct.fkcolumn_name)]} refers to {column} {types[column]}"
        for struct, column in zip(group, wanted, strict=True)
        if own_types[normalize(struct.fkcolumn_name)] != types[column]
    ]


def drop(call: Call, name: TableName, constraint: str | None) -> None:
    """Drop a constraint of a table. InvalidObject when table or constraint is missing."""
    if constraint is None:
        raise MetaError(f"{name}: the name of the constraint to drop cannot be null")
    table = _table(call, name)
    wanted = normalize(constraint)
    with change(call, DropConstraint(client=call.info, table=table, name=wanted)) as current:

        def work(session: Session) -> None:
            key = tables.lock(session, *name)
            if key is None or not rows.delete(session, key, wanted):
                raise InvalidObject(f"The constraint: {constraint} does not exist for the associated table: {name}")

        current.write(work)


def follow_columns(session: Session, table_id: int, difference: ColumnsDifference) -> None:
    """Let the constraints of a table, and the foreign keys that refer to it, follow its columns; one that needs a dropped column is
    removed.
    """
    changed, gone = [], []
    for row in rows.referring(session, table_id):
        body = _followed(row, table_id, difference)
        if body is None:
            gone.append(row.id)
        elif body != row.decoded():
            changed.append(row.changed(body))
    rows.replace(session, changed, gone)


def _followed(row: rows.StoredConstraint, table_id: int, difference: ColumnsDifference) -> dict[str, Any] | None:
    body = row.decoded()
    lists = [*(["columns"] if row.table_id == table_id else ()), *(["parent_columns"] if row.parent_table_id == table_id else ())]
    for columns in lists:
        body[columns] = difference.of(body[columns])
        if body[columns] is None:
            return None
    if row.kind == CHECK and body.get("value"):
        body["value"] = renamed_in(body["value"], difference)
        return None if body["value"] is None else body
    return body


def get(call: Call, name: TableName, kind: str | None = None) -> list[Any]:
    """Return the structs of a table's constraints, of one kind or of all; none for a missing table."""
    found = call.database.read(
        lambda session: rows.find(session, catalog=name.catalog, database=name.database, table=name.table, kind=kind)
    )
    return [struct for constraint in found for struct in structs_of(constraint)]


def get_foreign_keys(
    call: Call, catalog: str, parent: tuple[str | None, str | None], foreign: tuple[str | None, str | None]
) -> list[SQLForeignKey]:
    """Return the foreign keys between tables (database, name); None matches all."""
    found = call.database.read(
        lambda session: rows.find(
            session,
            catalog=catalog,
            kind=FOREIGN,
            parent_database=parent[0],
            parent_table=parent[1],
            database=foreign[0],
            table=foreign[1],
        )
    )
    return [struct for constraint in found for struct in structs_of(constraint)]


def get_all(call: Call, name: TableName) -> SQLAllTableConstraints:
    """Return all constraints of a table by kind."""
    found = get(call, name)
    return SQLAllTableConstraints(
        primaryKeys=[each for each in found if isinstance(each, SQLPrimaryKey)],
        foreignKeys=[each for each in found if isinstance(each, SQLForeignKey)],
        uniqueConstraints=[each for each in found if isinstance(each, SQLUniqueConstraint)],
        notNullConstraints=[each for each in found if isinstance(each, SQLNotNullConstraint)],
        defaultConstraints=[each for each in found if isinstance(each, SQLDefaultConstraint)],
        checkConstraints=[each for each in found if isinstance(each, SQLCheckConstraint)],
    )


def structs_of(constraint: Constraint) -> Iterator[Any]:
    """Yield one struct for each column of a constraint."""
    kind, name, body = constraint[:3]
    flags: dict[str, Any] = {"enable_cstr": body["enable"], "validate_cstr": body["validate"], "rely_cstr": body["rely"]}
    flags["catName"] = constraint.catalog
    table: dict[str, Any] = {"table_db": constraint.database, "table_name": constraint.table}
    for number, column in enumerate(body["columns"], 1):
        if kind == PRIMARY:
            yield SQLPrimaryKey(**table, column_name=column, key_seq=number, pk_name=name, **flags)
        elif kind == UNIQUE:
            yield SQLUniqueConstraint(**table, column_name=column, key_seq=number, uk_name=name, **flags)
        elif kind == NOT_NULL:
            yield SQLNotNullConstraint(**table, column_name=column, nn_name=name, **flags)
        elif kind == DEFAULT:
            yield SQLDefaultConstraint(**table, column_name=column, default_value=body["value"], dc_name=name, **flags)
        elif kind == CHECK:
            yield SQLCheckConstraint(**table, column_name=column, check_expression=body["value"], dc_name=name, **flags)
        else:
            yield SQLForeignKey(
                pktable_db=constraint.parent_database,
                pktable_name=constraint.parent_table,
                pkcolumn_name=body["parent_columns"][number - 1],
                fktable_db=constraint.database,
                fktable_name=constraint.table,
                fkcolumn_name=column,
                key_seq=number,
                update_rule=body["update_rule"],
                delete_rule=body["delete_rule"],
                fk_name=name,
                pk_name=body["parent_key"],
                **flags,
            )
