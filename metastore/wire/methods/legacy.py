"""Methods of features that Hive removed or that this server has switched off: they answer as a server that has none of it.

Indexes went in Hive 3.0 (Spark's client for 2.3 still asks for them); change management (`cm_recycle`) is for clusters that replicate. Only the
HBase store of Hive 2 ever kept metadata of files: all others say that they do not, in every release.
"""

from __future__ import annotations

from typing import Any

from metastore.errors import NoSuchObject
from metastore.idl import (
    CacheFileMetadataResult,
    ClearFileMetadataResult,
    CmRecycleResponse,
    GetFileMetadataByExprResult,
    GetFileMetadataResult,
    PutFileMetadataResult,
)
from metastore.service.context import Call
from metastore.wire.methods.table import Handler


def _no_index(call: Call, args: Any) -> None:
    name = getattr(args, "index_name", None)
    raise NoSuchObject(f"{args.db_name}.{args.tbl_name} has no index {name}: this server keeps no indexes, Hive removed them in 3.0")


METHODS: dict[str, Handler] = {
    "get_indexes": lambda call, args: [],
    "get_index_names": lambda call, args: [],
    "get_index_by_name": _no_index,
    "drop_index_by_name": _no_index,
    "cm_recycle": lambda call, args: CmRecycleResponse(),
    "get_file_metadata": lambda call, args: GetFileMetadataResult(metadata={}, isSupported=False),
    "get_file_metadata_by_expr": lambda call, args: GetFileMetadataByExprResult(metadata={}, isSupported=False),
    "put_file_metadata": lambda call, args: PutFileMetadataResult(),
    "clear_file_metadata": lambda call, args: ClearFileMetadataResult(),
    "cache_file_metadata": lambda call, args: CacheFileMetadataResult(isSupported=False),
}
