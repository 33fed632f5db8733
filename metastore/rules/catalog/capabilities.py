"""The capabilities that a client names, against those that a table needs.

Two languages: `ClientCapabilities` of 3.1 (`INSERT_ONLY_TABLES`) and the `processorCapabilities` of 4.x, here both as
names. Source: HMSHandler.assertClientHasCapability, MetastoreDefaultTransformer.transform. This module never changes
the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from metastore.errors import MetaError
from metastore.rules.catalog.table_kinds import is_external, is_full_acid, is_insert_only, is_transactional, table_label

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from metastore.idl import StorageDescriptor, Table

INSERT_ONLY_TABLES = "INSERT_ONLY_TABLES"
FULL_ACID_WRITE = "HIVEFULLACIDWRITE"
FULL_ACID_READ = "HIVEFULLACIDREAD"
INSERT_ONLY_WRITE = "HIVEMANAGEDINSERTWRITE"
INSERT_ONLY_READ = "HIVEMANAGEDINSERTREAD"
CONNECTOR_READ, CONNECTOR_WRITE = "CONNECTORREAD", "CONNECTORWRITE"
RAW_METADATA = frozenset({"MANAGERAWMETADATA", "MANAGE_RAW_METADATA"})
"""The capability for unchanged metadata, as Hive's server spells it and as its transformer does."""
BUCKETS = "HIVEBUCKET2"
UNMODIFIED = "ACCEPTS_UNMODIFIED_METADATA"
MATERIALIZED_VIEWS = "HIVEMQT"
TABLE_CAPABILITIES = "OBJCAPABILITIES"
"""Parameter of a table that lists the capabilities that it needs, instead of those of its kind."""

NO_ACCESS, READ_ONLY, READ_WRITE = 1, 2, 8

_ACID_WRITE = ("HIVEMANAGESTATS", "HIVECACHEINVALIDATE", CONNECTOR_WRITE)


@dataclass(frozen=True)
class TableAccess:
    """The access of a 4.x client to a table: `type` as `accessType` of the struct, and the capabilities that it lacks for more."""

    type: int
    missing_read: tuple[str, ...] = ()
    missing_write: tuple[str, ...] = ()


def check_capabilities(table: Table, capabilities: Collection[str] | None, client_name: str) -> None:
    """Raise MetaError when the client would misread the table: an insert-only one, without a capability for such tables.

    The data of such a table is valid only in the directories of committed write ids; a client that lists files sees
    the others too. Hive asks nothing for full ACID tables: their files do not look like data to such a client.
    """
    known = set(capabilities or ())
    if not is_insert_only(table) or known & {INSERT_ONLY_TABLES, INSERT_ONLY_READ, CONNECTOR_READ, *RAW_METADATA}:
        return
    raise MetaError(
        "Your client does not appear to support insert-only tables. To skip capability checks, set "
        f"metastore.client.capability.check to false. Client {client_name} lacks the capability {INSERT_ONLY_TABLES}, "
        f"which table {table_label(table)} needs; {INSERT_ONLY_READ} would do as well"
    )


def check_full_acid(table: Table, has_write_ids: Callable[[], bool]) -> None:
    """Raise MetaError when a client that names no capability would misread this full ACID table.

    Of clients without capabilities only Hive 2.3's reads it correctly; it numbers its writes by transactions. So tables that it made and
    that never had a write id are for all clients. The clients of Hive 3 and 4, Trino, Impala and Doris name a capability. Spark's own
    client, which is Hive 2.3's, and prestodb's list the files: they see none of the rows or deleted ones, and write beside them.
    """
    if not is_full_acid(table) or not (made_by_spark(table) or _knows_write_ids(table) or has_write_ids()):
        return
    raise MetaError(
        f"{table_label(table)} is a full ACID table, and the client names no capability: it would see some of its rows or none, and write "
        "beside them. On Spark use metastore.spark (AcidTable, or the format hive_acid); elsewhere a client that sends get_table_req with "
        f"{INSERT_ONLY_TABLES}, as Hive 3, Hive 4 and Trino do. The server's setting full_acid_check=false gives the table to all clients"
    )


def check_made_by_spark(table: Table) -> None:
    """Raise MetaError when Spark's own SQL would make this table transactional, whose rows it can not write."""
    if is_transactional(table) and made_by_spark(table):
        raise MetaError(
            f"{table_label(table)} can not be made transactional by Spark's SQL, which would write plain files into it. Make it without "
            "'transactional', then convert it: metastore.spark.migration.to_transactional. The server's setting full_acid_check=false "
            "allows it"
        )


def made_by_spark(table: Table) -> bool:
    """Return whether Spark made the table: its parameters then hold the release of Spark."""
    return "spark.sql.create.version" in (table.parameters or {})


def _knows_write_ids(table: Table) -> bool:
    """Return whether a client later than Hive 2.3's made the table: its parameters then hold the version of its buckets' hash."""
    return (table.parameters or {}).get("bucketing_version") == "2"


def check_create(table: Table, capabilities: Collection[str] | None, client_name: str) -> None:
    """Raise MetaError when the client may not create this transactional table because it can not write it."""
    needed = INSERT_ONLY_WRITE if is_insert_only(table) else FULL_ACID_WRITE
    if not (is_insert_only(table) or is_full_acid(table)) or needed in (capabilities or ()):
        return
    kind = "an insert-only" if is_insert_only(table) else "a full ACID"
    lacks = "has no capabilities" if not capabilities else "does not have the capabilities"
    raise MetaError(
        f"Processor {lacks}, cannot create {kind} table. Client {client_name} lacks the capability {needed}, "
        f"which table {table_label(table)} needs; create it as EXTERNAL or without transactional properties"
    )


def access(table: Table, capabilities: Collection[str]) -> TableAccess:
    """Return the access of a client with these 4.x capabilities to a table."""
    known = set(capabilities)
    reads, writes = required(table)
    missing_read = () if not reads or known & set(reads) else reads
    missing_write = () if not writes or known & set(writes[:1] + writes[-1:]) else writes
    if table.tableType == "MATERIALIZED_VIEW":
        missing_read = () if MATERIALIZED_VIEWS in known and known & {CONNECTOR_READ, FULL_ACID_READ} else reads
    elif writes and not missing_write and not is_external(table):
        missing_read = ()  # a client that may write a managed table may read it
    stated = (table.parameters or {}).get(TABLE_CAPABILITIES)
    if stated is not None:
        missing_read = tuple(name for name in reads if name not in known)
        missing_write = tuple(name for name in writes if name not in known)
    if missing_read:
        return TableAccess(NO_ACCESS, missing_read, missing_write)
    if missing_write or table.tableType in {"VIRTUAL_VIEW", "MATERIALIZED_VIEW"}:
        return TableAccess(READ_ONLY, (), missing_write)
    return TableAccess(READ_WRITE)


def required(table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the capabilities that reading and writing a table need.

    Any one of a list is enough for reading, the first or the last for writing. To read a materialized view takes the last, and one that
    reads transactional tables. All capabilities of the table's own list (`OBJCAPABILITIES`) are needed.
    """
    stated = (table.parameters or {}).get(TABLE_CAPABILITIES)
    if stated is not None:
        names = tuple(name for name in "".join(stated.split()).upper().split(",") if name)
        reads = tuple(name for name in names if name.endswith(("READ", "SQL")))
        return reads, tuple(name for name in names if name not in reads)
    if table.tableType == "VIRTUAL_VIEW":
        return ("HIVESQL", CONNECTOR_READ), ()
    if table.tableType == "MATERIALIZED_VIEW":
        return (CONNECTOR_READ, MATERIALIZED_VIEWS), ()
    if is_insert_only(table):
        return (CONNECTOR_READ, INSERT_ONLY_READ), (INSERT_ONLY_WRITE, *_ACID_WRITE)
    if is_full_acid(table):
        return (CONNECTOR_READ, FULL_ACID_READ), (FULL_ACID_WRITE, *_ACID_WRITE)
    if is_external(table):
        bucketed = is_bucketed(table.sd)
        return ("EXTREAD",) if not bucketed else (), (BUCKETS,) if bucketed else ("EXTWRITE",)
    return (), ()


def is_bucketed(sd: StorageDescriptor | None) -> bool:
    """Return whether rows are laid into a fixed number of buckets."""
    return sd is not None and (sd.numBuckets or 0) > 0


def misreads_buckets(capabilities: Collection[str] | None) -> bool:
    """Return whether a client would misread the buckets of external tables: it declares capabilities, but not the one for their hash.

    A client that requests unchanged metadata reads `accessType` instead.
    """
    return bool(capabilities) and not {BUCKETS, UNMODIFIED, *RAW_METADATA} & {*(capabilities or ())}
