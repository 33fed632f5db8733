"""Methods of indexes, which Hive removed in 3.0: its clients for 2.3, and Spark's, still ask for them."""

from __future__ import annotations

from typing import Any

from metastore.methods.forms import unpack
from metastore.methods.forms.entry import Handler
from metastore.service.call.context import Call
from metastore.service.engines import indexes


def _get_index_names(call: Call, args: Any) -> list[str]:
    found = indexes.get_indexes(call, unpack.table(call, args.db_name, args.tbl_name), args.max_indexes)
    return [index.indexName for index in found]


def _drop_index_by_name(call: Call, args: Any) -> bool:
    table = unpack.table(call, args.db_name, args.tbl_name)
    indexes.drop_index(call, table, args.index_name, delete_data=bool(args.deleteData))
    return True


METHODS: dict[str, Handler] = {
    "add_index": lambda call, args: indexes.add_index(call, args.new_index, args.index_table),
    "alter_index": lambda call, args: indexes.alter_index(
        call, unpack.table(call, args.dbname, args.base_tbl_name), args.idx_name, args.new_idx
    ),
    "drop_index_by_name": _drop_index_by_name,
    "get_index_by_name": lambda call, args: indexes.get_index(call, unpack.table(call, args.db_name, args.tbl_name), args.index_name),
    "get_indexes": lambda call, args: indexes.get_indexes(call, unpack.table(call, args.db_name, args.tbl_name), args.max_indexes),
    "get_index_names": _get_index_names,
}
