"""Check the transactional parameters of a table that is created or altered, and bring them to their normal form.

Source: Hive's TransactionalValidationListener. This module never decides that a table should be transactional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.errors import MetaError
from metastore.rules.catalog.table_kinds import (
    INSERT_ONLY,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    is_external,
    is_full_acid,
    is_insert_only,
    is_transactional,
    parameter,
    table_label,
)

if TYPE_CHECKING:
    from metastore.idl import Table

ORC_INPUT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
ORC_OUTPUT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
ORC_SERDE = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"

_NAMES = (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES)


def has_acid_format(table: Table) -> bool:
    """Return whether the table's files can hold updates: Hive ships one such format, ORC."""
    return table.sd is not None and table.sd.inputFormat == ORC_INPUT and table.sd.outputFormat == ORC_OUTPUT


def is_sorted(table: Table) -> bool:
    return table.sd is not None and bool(table.sd.sortCols)


def validate_transactional(old: Table | None, new: Table) -> dict[str, str]:
    """Return `new`'s parameters with the transactional ones in normal form; `old` is None when it is created.

    `transactional=false` is dropped, `true` gets `transactional_properties` (default `default`). MetaError for any
    other value, for an external table, view or sorted or non-ORC table that would be full ACID, and for taking the
    property back or changing its kind; only insert-only may become full ACID.
    """
    label = table_label(new)
    value, properties = parameter(new.parameters, TRANSACTIONAL), parameter(new.parameters, TRANSACTIONAL_PROPERTIES)
    rest = {key: text for key, text in (new.parameters or {}).items() if key.lower() not in _NAMES}
    wanted = value is not None and value.lower() == "true"
    if value is not None and value.lower() not in {"true", "false"}:
        raise MetaError(f"'transactional' property of TBLPROPERTIES may only have value 'true': {label}")
    was = old is not None and is_transactional(old)
    if not wanted:
        if was:
            raise MetaError(f"TBLPROPERTIES with 'transactional'='true' cannot be unset: {label}")
        return rest if properties is None else {**rest, TRANSACTIONAL_PROPERTIES: properties}
    properties = (properties or "default").lower()
    if properties not in {"default", INSERT_ONLY}:
        raise MetaError(
            f"Invalid transactional properties specified for {label} with the error unknown value {properties} for transactional_properties"
        )
    if old is not None and was:
        _check_kind_stays(old, new, properties)
    _check_fits(old, new, full=properties != INSERT_ONLY)
    return {**rest, TRANSACTIONAL: "true", TRANSACTIONAL_PROPERTIES: properties}


def _check_kind_stays(old: Table, new: Table, properties: str) -> None:
    if is_full_acid(old) and properties == INSERT_ONLY:
        raise MetaError(
            "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created: "
            f"{table_label(new)} is full ACID and cannot become insert_only"
        )


def _check_fits(old: Table | None, new: Table, *, full: bool) -> None:
    label = table_label(new)
    if is_external(new) or new.tableType == "EXTERNAL_TABLE":
        if old is not None and is_transactional(old):
            raise MetaError(f"{label} cannot be converted to external table as it is transactional table.")
        raise MetaError(f"{label} cannot be declared transactional because it's an external table")
    if new.tableType == "VIRTUAL_VIEW":
        raise MetaError(f"{label} cannot be declared transactional because it's a view")
    if not full:
        return
    becomes = old is None or not is_transactional(old) or is_insert_only(old)
    if becomes and not has_acid_format(new):
        raise MetaError(f"The table must be stored using an ACID compliant format (such as ORC): {label}")
    if is_sorted(new):
        raise MetaError(f"Table {label} cannot support full ACID functionality since it is sorted.")
