"""Methods of indexes, which Hive removed in 3.0: its clients for 2.3, and Spark's, still ask for them."""

from __future__ import annotations

from typing import Any

from metastore.methods.catalog import table_rules as rules
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ALTER, SEE, found_by, needs, on_table
from metastore.service.call.context import Call
from metastore.service.engines import indexes


def _get_index_names(call: Call, args: Any) -> list[str]:
    found = indexes.get_indexes(call, unpack.table(call, args.db_name, args.tbl_name), args.max_indexes)
    return [index.indexName for index in found]


def _drop_index_by_name(call: Call, args: Any) -> bool:
    table = unpack.table(call, args.db_name, args.tbl_name)
    indexes.drop_index(call, table, args.index_name, delete_data=bool(args.deleteData))
    return True


METHODS = (
    changes(
        "add_index",
        lambda call, args: indexes.add_index(call, args.new_index, args.index_table),
        needs(
            on_table(ALTER, "new_index.dbName", "new_index.origTableName"),
            found_by("ownership or DROP on the index table, CREATE on its database if it is missing", rules.makes_index_table),
            *rules.creates_table("index_table"),
            operation="CREATEINDEX",
            fill=rules.made_table("index_table"),
            renews=True,
        ),
    ),
    changes(
        "alter_index",
        lambda call, args: indexes.alter_index(call, unpack.table(call, args.dbname, args.base_tbl_name), args.idx_name, args.new_idx),
        needs(on_table(ALTER, "dbname", "base_tbl_name"), operation="ALTERINDEX_PROPS"),
    ),
    changes("drop_index_by_name", _drop_index_by_name, needs(on_table(ALTER, "db_name", "tbl_name"), operation="DROPINDEX", renews=True)),
    reads(
        "get_index_by_name",
        lambda call, args: indexes.get_index(call, unpack.table(call, args.db_name, args.tbl_name), args.index_name),
        needs(on_table(SEE, "db_name", "tbl_name"), operation="DESCTABLE"),
    ),
    reads(
        "get_indexes",
        lambda call, args: indexes.get_indexes(call, unpack.table(call, args.db_name, args.tbl_name), args.max_indexes),
        rules.SEES_INDEXES,
    ),
    reads("get_index_names", _get_index_names, rules.SEES_INDEXES),
)
