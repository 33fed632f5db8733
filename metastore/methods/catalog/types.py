"""Methods of named types and of marks on partitions."""

from __future__ import annotations

from typing import Any

from metastore.errors import MetaError
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import Handler
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


METHODS: dict[str, Handler] = {
    "create_type": _create_type,
    "drop_type": _drop_type,
    "get_type": lambda call, args: types.get_type(call, args.name),
    "get_type_all": _get_type_all,
    "markPartitionForEvent": lambda call, args: partition_marks.mark(
        call, unpack.table(call, args.db_name, args.tbl_name), args.part_vals, args.eventType
    ),
    "isPartitionMarkedForEvent": lambda call, args: partition_marks.is_marked(
        call, unpack.table(call, args.db_name, args.tbl_name), args.part_vals, args.eventType
    ),
}
