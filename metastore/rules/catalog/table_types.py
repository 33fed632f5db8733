"""Decide how a table is stored: its type, its transactional kind, and the root of its directory.

`docs/table-types.md` has the rules as a table of all combinations, which a test runs against `translate`. Mode `legacy` stores the
requested type, as the 2.3 and 3.1 servers do; `strict` keeps managed tables transactional, as CDP and Hive 4 do
(MetastoreDefaultTransformer). By CDP's rule a client with the capability to write ACID tables gets one. Nothing here touches a directory,
and no argument is changed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from metastore.errors import MetaError
from metastore.rules.catalog.capabilities import FULL_ACID_WRITE, INSERT_ONLY_WRITE, check_capabilities, check_create
from metastore.rules.catalog.table_kinds import (
    EXTERNAL,
    INSERT_ONLY,
    PURGE,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    TRANSLATED,
    VIEWS,
    is_external,
    is_full_acid,
    is_insert_only,
    is_transactional,
    is_true,
    parameter,
    purges_data,
    stored_type,
    table_label,
)
from metastore.rules.catalog.transactional import ORC_INPUT, ORC_OUTPUT, ORC_SERDE, has_acid_format, is_sorted, validate_transactional

if TYPE_CHECKING:
    from metastore.idl import Table

__all__ = [
    "Roots",
    "Translation",
    "check_capabilities",
    "default_directory",
    "is_external",
    "is_full_acid",
    "is_insert_only",
    "is_transactional",
    "moves_on_rename",
    "place_of_new",
    "purges_data",
    "stored_type",
    "translate",
    "translate_alter",
    "validate_location",
    "validate_transactional",
]

Mode = Literal["legacy", "strict"]
Root = Literal["managed", "external", "none"]


SOFT_DELETE = "soft_delete"
"""Parameter of a table that Hive 4 drops without its data, for its open readers."""
_WITH_TRANSACTION = re.compile(r"\.v\d+\Z", re.ASCII)


@dataclass(frozen=True)
class Roots:
    """The directories for tables of one database: the warehouse's two roots and the database's own two locations."""

    managed: str
    external: str | None
    database: str
    """`locationUri`: the directory of external tables, and of all tables without an external root."""
    database_managed: str | None = None
    """`managedLocationUri`."""
    database_name: str = "default"
    keeps_own: bool = False
    """Whether managed tables, too, are in the database's own location, which is not its default one."""


@dataclass(frozen=True)
class Translation:
    """The table to store: a copy, and the root of its location if none was given."""

    table: Table
    root: Root


def translate(
    table: Table,
    *,
    mode: Mode,
    roots: Roots,
    capabilities: Collection[str] | None = None,
    client_name: str = "unknown",
    default_catalog: str = "hive",
    create_as_acid: bool = False,
    as_external: bool = False,
) -> Translation:
    """Return the table to store for a new one.

    With `as_external`, on the client's request, a managed table without the property becomes external in any case. `capabilities` are the
    client's declared ones (4.x names), `client_name` is for error messages. MetaError when the transactional parameters do not fit, when
    the client can not write the table that it creates, or when the location is not allowed for such a table. Only tables of the default
    catalog are translated.
    """
    table = copy(table)
    table.parameters = dict(table.parameters or {})
    table.sd = copy(table.sd)
    if as_external and stored_type(table) == "MANAGED_TABLE" and not _asks_for_acid(table):
        _make_external(table)
    elif mode == "strict" and (table.catName or default_catalog).lower() == default_catalog.lower():
        _make_strict(table, frozenset(capabilities or ()))
    elif create_as_acid and parameter(table.parameters, TRANSACTIONAL) is None and _fits_acid(table):
        table.parameters[TRANSACTIONAL] = "true"
    table.tableType = stored_type(table)
    table.parameters = validate_transactional(None, table)
    if mode == "strict" and (table.catName or default_catalog).lower() == default_catalog.lower():
        if table.tableType == "MANAGED_TABLE":
            check_create(table, capabilities, client_name)
        if TRANSLATED not in table.parameters:
            validate_location(table, roots)
    return Translation(table, root_of(table))


def translate_alter(old: Table, new: Table, *, mode: Mode, roots: Roots, default_catalog: str = "hive") -> Table:
    """Return the table to store for an altered one; MetaError as `translate`, and for taking `transactional` back."""
    new = copy(new)
    new.parameters = dict(new.parameters or {})
    new.tableType = stored_type(new)
    new.parameters = validate_transactional(old, new)
    if mode == "strict" and (new.catName or default_catalog).lower() == default_catalog.lower():
        before = old.sd.location if old.sd is not None else None
        after = new.sd.location if new.sd is not None else None
        if after and before and after != before:
            validate_location(new, roots)
    return new


def _asks_for_acid(table: Table) -> bool:
    names = (TRANSACTIONAL, INSERT_ONLY)
    properties = parameter(table.parameters, TRANSACTIONAL_PROPERTIES)
    return properties is not None or any(is_true(parameter(table.parameters, name)) for name in names)


def _fits_acid(table: Table) -> bool:
    return stored_type(table) == "MANAGED_TABLE" and has_acid_format(table) and not is_sorted(table)


def _make_strict(table: Table, capabilities: frozenset[str]) -> None:
    parameters = table.parameters
    if table.tableType == "EXTERNAL_TABLE" or is_external(table):
        parameters[EXTERNAL] = "TRUE"
        return
    if stored_type(table) != "MANAGED_TABLE":
        return
    properties = (parameter(parameters, TRANSACTIONAL_PROPERTIES) or "").lower()
    insert_only = properties == INSERT_ONLY or is_true(parameter(parameters, INSERT_ONLY))
    stated = parameter(parameters, TRANSACTIONAL)
    if insert_only and not (stated and stated.lower() == "false"):
        _set_kind(table, full=False)
    elif is_true(stated):
        if not properties:
            _set_kind(table, full=_may_be_full(table))
    elif stated is None and FULL_ACID_WRITE in capabilities and _may_be_full(table) and not is_sorted(table):
        _set_kind(table, full=True)
    elif stated is None and INSERT_ONLY_WRITE in capabilities:
        _set_kind(table, full=False)
    elif stated is None or stated.lower() == "false":
        _make_external(table)


def _may_be_full(table: Table) -> bool:
    return has_acid_format(table) or _has_no_format(table)


def _has_no_format(table: Table) -> bool:
    return table.sd is not None and not table.sd.inputFormat and not table.sd.outputFormat


def _set_kind(table: Table, *, full: bool) -> None:
    names = (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES)
    table.parameters = {key: value for key, value in table.parameters.items() if key.lower() not in names}
    table.parameters[TRANSACTIONAL] = "true"
    table.parameters[TRANSACTIONAL_PROPERTIES] = "default" if full else INSERT_ONLY
    if full and _has_no_format(table):
        table.sd.inputFormat, table.sd.outputFormat = ORC_INPUT, ORC_OUTPUT
        if table.sd.serdeInfo is not None and not table.sd.serdeInfo.serializationLib:
            table.sd.serdeInfo = copy(table.sd.serdeInfo)
            table.sd.serdeInfo.serializationLib = ORC_SERDE


def _make_external(table: Table) -> None:
    names = (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES)
    table.parameters = {key: value for key, value in table.parameters.items() if key.lower() not in names}
    table.parameters.update({EXTERNAL: "TRUE", PURGE: "TRUE", TRANSLATED: "TRUE"})


def root_of(table: Table) -> Root:
    """Return the root of a table's default location; a view has no directory, a materialized view has."""
    if table.tableType in VIEWS:
        return "none"
    return "external" if is_external(table) else "managed"


def default_directory(root: Root, roots: Roots) -> str | None:
    """Return the directory in which a table without a location gets its own, None for a view.

    Without an external root all tables are in the database's location. With one, an external table is never below the managed root nor a
    managed one outside it, even if the database's own locations differ, unless `keeps_own`.
    """
    if root == "none":
        return None
    if roots.external is None:
        return roots.database if root == "external" or roots.database_managed is None else roots.database_managed
    folder = "" if roots.database_name == "default" else f"/{roots.database_name}.db"
    if root == "managed":
        if roots.database_managed:
            return roots.database_managed
        own = roots.keeps_own or is_below(roots.database, roots.managed)
        return roots.database if own else roots.managed.rstrip("/") + folder
    if is_below(roots.database, roots.managed) and not is_below(roots.database, roots.external):
        return roots.external.rstrip("/") + folder
    return roots.database


def place_of_new(table: Table, location: str) -> str:
    """Return the location of a new table from its default one. A table that Hive 4 drops without its data gets a place of its own.

    The place's name ends with the transaction that makes the table, unless it has such an end already: a later table of that name then
    begins in another directory. Source: Hive's HMSHandler.getTableSuffix.
    """
    if not table.txnId or table.tableType in VIEWS or not is_true((table.parameters or {}).get(SOFT_DELETE)):
        return location
    place = location.rstrip("/")
    return place if _WITH_TRANSACTION.search(place.rpartition("/")[2]) else f"{place}.v{table.txnId:07d}"


def validate_location(table: Table, roots: Roots) -> None:
    """Raise MetaError when a given location is not allowed for a table of this kind (strict mode only).

    Managed tables are in the database's managed location or the managed root; external ones, with an external root, are not below the
    managed one.
    """
    location = table.sd.location if table.sd is not None else None
    if not location or table.tableType in VIEWS or table.tableType == "MATERIALIZED_VIEW":
        return
    if not is_external(table):
        allowed = [place for place in (roots.database_managed, roots.managed) if place]
        if roots.external is None:
            allowed.append(roots.database)
        if not any(is_below(location, place) for place in allowed) or _lies_outside(location, roots):
            raise MetaError(
                "A managed table's location should be located within managed warehouse root directory or within its "
                f"database's managedLocationUri. Table {table_label(table)}'s location is not valid: {location}, "
                f"expected below {' or '.join(allowed)}; leave the location out or create the table as EXTERNAL"
            )
    elif roots.external is not None and is_below(location, roots.managed) and not is_below(location, roots.external):
        raise MetaError(
            "An external table's location should not be located within managed warehouse root directory, "
            f"table: {table_label(table)}, location: {location}, managed warehouse: {roots.managed}, "
            f"expected below {roots.external} or outside the warehouse"
        )


def _lies_outside(location: str, roots: Roots) -> bool:
    """Return whether a location belongs to the external root, which may itself be below the managed root."""
    inner = roots.external is not None and is_below(roots.external, roots.managed)
    own = roots.database_managed is not None and is_below(location, roots.database_managed)
    return inner and not own and roots.external is not None and is_below(location, roots.external)


def moves_on_rename(table: Table) -> bool:
    """Return whether a rename moves the table's directory: for managed tables and those that strict mode translated."""
    if table.tableType in VIEWS:
        return False
    return not is_external(table) or is_true((table.parameters or {}).get(TRANSLATED))


def is_below(location: str, root: str) -> bool:
    """Return whether `location` is `root` or is below it; `..` is resolved, the three names of S3 are one."""
    scheme, authority, path = _parts(location)
    root_scheme, root_authority, root_path = _parts(root)
    if scheme and root_scheme and scheme != root_scheme:
        return False
    if authority and root_authority and authority != root_authority:
        return False
    return path == root_path or path.startswith(root_path.rstrip("/") + "/")


def _parts(location: str) -> tuple[str, str, str]:
    scheme, mark, rest = location.partition(":")
    if not mark or "/" in scheme:
        scheme, rest = "", location
    authority = ""
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    path = posixpath.normpath("/" + rest.lstrip("/"))
    return {"s3a": "s3", "s3n": "s3"}.get(scheme.lower(), scheme.lower()), authority.lower(), path
