"""Recognise the kind of a table. Never changes it.

Source: Hive's MetaStoreUtils (isExternalTable, isInsertOnlyTableParam), TxnUtils (isAcidTable) and ObjectStore
(convertToMTable, convertToTable). Everywhere but on store, "external" means the parameter, not the type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.idl import Table

TRANSACTIONAL = "transactional"
TRANSACTIONAL_PROPERTIES = "transactional_properties"
INSERT_ONLY = "insert_only"
EXTERNAL = "EXTERNAL"
PURGE = "external.table.purge"
TRANSLATED = "TRANSLATED_TO_EXTERNAL"
FORMATS = ("iceberg", "delta", "hudi", "paimon")
"""Formats whose tables have their own columns beside those in the catalog, and read them by their own rules."""
_FORMAT_CLASSES = ("org.apache.iceberg.", "io.delta.", "org.apache.hudi.", "com.uber.hoodie.", "org.apache.paimon.")
"""Beginnings of the names of classes by which engines read such tables."""
_FORMAT_PARAMETERS = ("table_type", "spark.sql.sources.provider", "storage_handler")
VIEWS = frozenset({"VIRTUAL_VIEW"})
"""Types of tables that have no data and no directory; a materialized view has both."""
INDEX_TABLE = "INDEX_TABLE"
"""The type of a table that holds the content of a Hive 2.3 index."""


def parameter(parameters: Mapping[str, str] | None, name: str) -> str | None:
    """Return a parameter whose name is `name` in any case."""
    if not parameters:
        return None
    found = parameters.get(name)
    if found is not None:
        return found
    length, lowered = len(name), name.lower()
    for key, value in parameters.items():
        if len(key) == length and key.lower() == lowered:
            return value
    return None


def is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"


def keeps_own_columns(table: Table) -> bool:
    """Return whether the table's format keeps the columns itself, so that the catalog's may change in any way.

    Its parameters name the format, or the classes by which it is read do.
    """
    values = [(parameter(table.parameters, name) or "").lower() for name in _FORMAT_PARAMETERS]
    if any(each in value for value in values if value for each in FORMATS):
        return True
    sd = table.sd
    if sd is None:
        return False
    serde = sd.serdeInfo.serializationLib if sd.serdeInfo is not None else None
    return (sd.inputFormat or "").startswith(_FORMAT_CLASSES) or (serde or "").startswith(_FORMAT_CLASSES)


def is_external(table: Table) -> bool:
    """Return whether the server leaves the table's data alone: parameter EXTERNAL is true, in any case."""
    return is_true((table.parameters or {}).get(EXTERNAL))


def is_transactional(table: Table) -> bool:
    return is_true(parameter(table.parameters, TRANSACTIONAL))


def is_insert_only(table: Table) -> bool:
    """Return whether the table is transactional without updates: any format, rows valid by directory."""
    properties = parameter(table.parameters, TRANSACTIONAL_PROPERTIES)
    return is_transactional(table) and (properties or "").lower() == INSERT_ONLY


def is_full_acid(table: Table) -> bool:
    """Return whether the table takes updates and deletes."""
    return is_transactional(table) and not is_insert_only(table)


def purges_data(table: Table) -> bool:
    """Return whether dropping the table drops its data: not for views, for external tables only with `external.table.purge`."""
    if table.tableType == "VIRTUAL_VIEW":
        return False
    return not is_external(table) or is_true((table.parameters or {}).get(PURGE))


def stored_type(table: Table) -> str:
    """Return the type to store: the parameter EXTERNAL wins over the type, and a missing type is deduced."""
    if table.tableType in (None, ""):
        if table.viewOriginalText:
            return "VIRTUAL_VIEW"
        return "EXTERNAL_TABLE" if is_external(table) else "MANAGED_TABLE"
    if table.tableType in {"MANAGED_TABLE", "EXTERNAL_TABLE"}:
        return "EXTERNAL_TABLE" if is_external(table) else "MANAGED_TABLE"
    return table.tableType


def table_label(table: Table) -> str:
    """Return the table's name in error messages: `database.table`."""
    return f"{table.dbName}.{table.tableName}"
