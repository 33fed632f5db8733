"""Methods that add, change and drop partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metastore.errors import MetaError, MissingArgument
from metastore.idl import (
    AddPartitionsResult,
    AlterPartitionsResponse,
    DropPartitionsResult,
    Partition,
    RenamePartitionResponse,
)
from metastore.methods.catalog import partition_rules as rules
from metastore.methods.catalog import partition_specs
from metastore.methods.catalog.partitions import project, table_of
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes
from metastore.methods.forms.rules import ALTER, REMOVES, WRITES, needs, on_table
from metastore.rules.names import normalize
from metastore.rules.statistics import statistics_validity as validity_rules
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.call.releases import Sign
from metastore.service.catalog.partitions.add_partitions import add_partitions, append_partition, append_partition_by_name
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.drop_partitions import drop_partition, drop_partition_by_name, drop_partitions
from metastore.service.catalog.partitions.expressions import (
    Dropped,
    drop_partitions_by_expressions,
)
from metastore.service.catalog.tables import tables


def _with_columns(call: Call, name: TableName, sent: list[Partition], request: Any) -> list[Partition]:
    """Give partitions the columns that a client leaves out: the columns that it sends once for all (4.1), else the table's (4.0)."""
    bare = [each.sd for each in sent if each is not None and each.sd is not None and not each.sd.cols]
    if request.skipColumnSchemaForPartition and bare:
        columns = request.partitionColSchema or tables.find_table(call, name).sd.cols
        for descriptor in bare:
            descriptor.cols = columns
    return sent


def _add_partition(call: Call, args: Any) -> Partition:
    part = args.new_part
    if part is None:
        raise MetaError("Partition cannot be null")
    context = getattr(args, "environment_context", None)
    name = unpack.table(call, part.dbName, part.tableName, part.catName)
    return add_partitions(call, name, [part], environment=unpack.environment(context))[0]


def _add_partitions(call: Call, args: Any) -> int:
    parts = args.new_parts
    if parts is None:
        raise MissingArgument("add_partitions needs a list of partitions")
    if not parts:
        return 0
    first = parts[0]
    if first is None:
        raise MetaError("Partition cannot be null")
    _check_spelling(call, parts)
    return len(add_partitions(call, unpack.table(call, first.dbName, first.tableName, first.catName), parts))


def _check_spelling(call: Call, parts: Sequence[Partition | None]) -> None:
    """Raise MetaError for partitions of Hive 4's client that spell their table in more than one way, as Hive's server does."""
    if not call.client.release.is_4:
        return
    spelled: dict[str, str] = {}
    for part in parts:
        if part is not None:
            name = f"{part.dbName}.{part.tableName}"
            first = spelled.setdefault(normalize(name), name)
            if name != first:
                raise MetaError(f"Partition does not belong to target table {first}: it names {name}")


def _add_partitions_req(call: Call, args: Any) -> AddPartitionsResult:
    request = args.request
    name = unpack.target(call, request)
    _check_spelling(call, request.parts or [])
    added = add_partitions(
        call,
        name,
        _with_columns(call, name, request.parts or [], request),
        if_not_exists=bool(request.ifNotExists),
        environment=unpack.environment(request.environmentContext),
    )
    if request.needResult is False:
        return AddPartitionsResult()
    columns = added[0].sd.cols if request.skipColumnSchemaForPartition and added and added[0].sd is not None else None
    return AddPartitionsResult(partitions=added, partitionColSchema=columns)


def _append(call: Call, args: Any) -> Partition:
    context = getattr(args, "environment_context", None)
    return append_partition(call, table_of(call, args), args.part_vals, environment=unpack.environment(context))


def _append_by_name(call: Call, args: Any) -> Partition:
    context = getattr(args, "environment_context", None)
    return append_partition_by_name(call, table_of(call, args), args.part_name, environment=unpack.environment(context))


def _append_req(call: Call, args: Any) -> Partition:
    request = args.appendPartitionsReq
    name = unpack.table(call, request.dbName, request.tableName, request.catalogName)
    environment = unpack.environment(request.environmentContext)
    if request.name is not None:
        return append_partition_by_name(call, name, request.name, environment=environment)
    return append_partition(call, name, request.partVals, environment=environment)


def _alter_partition(call: Call, args: Any) -> None:
    if args.new_part is None:
        raise MissingArgument(f"{call.method} needs the new partition")
    context = getattr(args, "environment_context", None)
    rename_partition(call, table_of(call, args), None, args.new_part, environment=unpack.environment(context))


def _alter_partitions(call: Call, args: Any) -> None:
    if args.new_parts is None:
        raise MissingArgument(f"{call.method} needs the new partitions")
    context = getattr(args, "environment_context", None)
    alter_partitions(call, table_of(call, args), args.new_parts or [], environment=unpack.environment(context))


def _alter_partitions_req(call: Call, args: Any) -> AlterPartitionsResponse:
    request = args.req
    name = unpack.target(call, request)
    sent = _with_columns(call, name, request.partitions or [], request)
    by = validity_rules.writer(request.writeId, request.validWriteIdList)
    alter_partitions(call, name, sent, environment=unpack.environment(request.environmentContext), by=by)
    return AlterPartitionsResponse()


def _rename_partition(call: Call, args: Any) -> None:
    if args.new_part is None:
        raise MissingArgument(f"{call.method} needs the new partition")
    rename_partition(call, table_of(call, args), args.part_vals, args.new_part)


def _rename_partition_req(call: Call, args: Any) -> RenamePartitionResponse:
    rename_partition(call, unpack.target(call, args.req), args.req.partVals, args.req.newPart)
    return RenamePartitionResponse()


def _drop_partition(call: Call, args: Any) -> bool:
    environment = unpack.environment(getattr(args, "environment_context", None))
    drop_partition(call, table_of(call, args), args.part_vals, delete_data=bool(args.deleteData), environment=environment)
    return True


def _drop_partition_by_name(call: Call, args: Any) -> bool:
    environment = unpack.environment(getattr(args, "environment_context", None))
    drop_partition_by_name(call, table_of(call, args), args.part_name, delete_data=bool(args.deleteData), environment=environment)
    return True


def _drop_partition_req(call: Call, args: Any) -> bool:
    request = args.dropPartitionReq
    name, environment = unpack.target(call, request), unpack.environment(request.environmentContext)
    if request.partName is not None:
        drop_partition_by_name(call, name, request.partName, delete_data=bool(request.deleteData), environment=environment)
    else:
        drop_partition(call, name, request.partVals, delete_data=bool(request.deleteData), environment=environment)
    return True


def _drop_partitions_req(call: Call, args: Any) -> DropPartitionsResult:
    request = args.req
    name, environment = unpack.target(call, request), unpack.environment(request.environmentContext)
    delete_data, if_exists = bool(request.deleteData), request.ifExists is not False
    if request.parts is not None and request.parts.exprs is not None:
        wanted = [Dropped(each.expr or b"", None if request.ignoreProtection else each.partArchiveLevel) for each in request.parts.exprs]
        dropped = drop_partitions_by_expressions(call, name, wanted, delete_data=delete_data, if_exists=if_exists, environment=environment)
    elif request.parts is not None and request.parts.names is not None:
        dropped = drop_partitions(call, name, request.parts.names, delete_data=delete_data, if_exists=if_exists, environment=environment)
    else:
        raise MetaError("Partition spec is not set: send names or expressions in parts")
    return DropPartitionsResult(partitions=project(dropped, request) if request.needResult is not False else None)


METHODS = (
    changes("add_partition", _add_partition, needs(rules.adds_partitions(rules.new_part), operation="ALTERTABLE_ADDPARTS")),
    changes(
        "add_partition_with_environment_context",
        _add_partition,
        needs(rules.adds_partitions(rules.new_part), operation="ALTERTABLE_ADDPARTS"),
    ),
    changes("add_partitions", _add_partitions, needs(rules.adds_partitions(rules.new_parts), operation="ALTERTABLE_ADDPARTS")),
    changes(
        "add_partitions_req",
        _add_partitions_req,
        needs(rules.changes_partitions(*rules.named_in("request"), lambda args: args.request.parts or ()), operation="ALTERTABLE_ADDPARTS"),
    ),
    changes(
        "add_partitions_pspec",
        partition_specs.add,
        needs(rules.adds_partitions(rules.new_parts, rules.spec_members), operation="ALTERTABLE_ADDPARTS"),
    ),
    changes("append_partition", _append, rules.APPENDS),
    changes("append_partition_with_environment_context", _append, rules.APPENDS),
    changes("append_partition_by_name", _append_by_name, rules.APPENDS_BY_NAME),
    changes("append_partition_by_name_with_environment_context", _append_by_name, rules.APPENDS_BY_NAME),
    changes(
        "append_partition_req",
        _append_req,
        needs(
            rules.appends_partition(
                f"{rules.REQUEST}.tableName",
                f"{rules.REQUEST}.partVals",
                f"{rules.REQUEST}.dbName",
                f"{rules.REQUEST}.catalogName",
                text=f"{rules.REQUEST}.name",
            ),
            operation="ALTERTABLE_ADDPARTS",
        ),
        sign=Sign.SINCE_4,
    ),
    changes(
        "alter_partition",
        _alter_partition,
        needs(
            rules.changes_partitions(*rules.named_flat(), None, rules.new_part, WRITES, rules.stays), operation="ALTERPARTITION_PROPERTIES"
        ),
    ),
    changes(
        "alter_partition_with_environment_context",
        _alter_partition,
        needs(
            rules.changes_partitions(*rules.named_flat(), None, rules.new_part, WRITES, rules.stays), operation="ALTERPARTITION_PROPERTIES"
        ),
    ),
    changes(
        "alter_partitions",
        _alter_partitions,
        needs(
            rules.changes_partitions(*rules.named_flat(), None, rules.new_parts, WRITES, rules.stays), operation="ALTERPARTITION_PROPERTIES"
        ),
    ),
    changes(
        "alter_partitions_with_environment_context",
        _alter_partitions,
        needs(
            rules.changes_partitions(*rules.named_flat(), None, rules.new_parts, WRITES, rules.stays), operation="ALTERPARTITION_PROPERTIES"
        ),
    ),
    changes(
        "alter_partitions_req",
        _alter_partitions_req,
        needs(
            rules.changes_partitions(*rules.named_in("req", "tableName"), lambda args: args.req.partitions or (), WRITES, rules.stays),
            operation="ALTERPARTITION_PROPERTIES",
        ),
        sign=Sign.SINCE_4,
    ),
    changes(
        "rename_partition",
        _rename_partition,
        needs(
            on_table(ALTER, *rules.named_flat()),
            rules.changes_partitions(*rules.named_flat(), None, rules.new_part, placed=rules.renamed),
            operation="ALTERTABLE_RENAMEPART",
        ),
    ),
    changes(
        "rename_partition_req",
        _rename_partition_req,
        needs(
            on_table(ALTER, *rules.named_in("req", "tableName")),
            rules.changes_partitions(*rules.named_in("req", "tableName"), lambda args: [args.req.newPart], placed=rules.renamed),
            operation="ALTERTABLE_RENAMEPART",
        ),
        sign=Sign.SINCE_4,
    ),
    changes("drop_partition", _drop_partition, rules.DROPS),
    changes("drop_partition_with_environment_context", _drop_partition, rules.DROPS),
    changes("drop_partition_by_name", _drop_partition_by_name, rules.DROPS),
    changes("drop_partition_by_name_with_environment_context", _drop_partition_by_name, rules.DROPS),
    changes(
        "drop_partition_req",
        _drop_partition_req,
        needs(on_table(REMOVES, *rules.named_in("dropPartitionReq")), operation="ALTERTABLE_DROPPARTS"),
        sign=Sign.SINCE_4,
    ),
    changes(
        "drop_partitions_req", _drop_partitions_req, needs(on_table(REMOVES, *rules.named_in("req")), operation="ALTERTABLE_DROPPARTS")
    ),
)
