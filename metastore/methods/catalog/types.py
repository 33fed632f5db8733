"""Methods of named types and of marks on partitions."""

from __future__ import annotations

from typing import Any

from metastore.errors import MetaError
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ADDS, ADMIN, OPEN, SEE, needs, on_table
from metastore.service.call.context import Call
from metastore.service.catalog import types
from metastore.service.catalog.partitions import partition_marks


def _create_type(call: Call, args: Any) -> bool:
    types.create_type(call, args.type)
    return True


def _drop_type(call: Call, args: Any) -> bool:
    types.drop_type(call, args.type)
    return True


def _get_type_all(call: Call, args: Any) -> None:
    raise MetaError("Not yet implemented")  # in no release of Java's server either


METHODS = (
    changes("create_type", _create_type, ADMIN),
    changes("drop_type", _drop_type, ADMIN),
    reads("get_type", lambda call, args: types.get_type(call, args.name), OPEN),
    reads("get_type_all", _get_type_all, OPEN, dead="MetaException *Not yet implemented*, as in Java"),
    changes(
        "markPartitionForEvent",
        lambda call, args: partition_marks.mark(call, unpack.table(call, args.db_name, args.tbl_name), args.part_vals, args.eventType),
        needs(on_table(ADDS, "db_name", "tbl_name"), operation="ALTERPARTITION_PROPERTIES"),
    ),
    reads(
        "isPartitionMarkedForEvent",
        lambda call, args: partition_marks.is_marked(call, unpack.table(call, args.db_name, args.tbl_name), args.part_vals, args.eventType),
        needs(on_table(SEE, "db_name", "tbl_name"), operation="DESCTABLE"),
    ),
)
