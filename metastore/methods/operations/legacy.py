"""Methods of features that this server has switched off: they answer as a server that has none of it.

Change management (`cm_recycle`) is for clusters that replicate. Only the HBase store of Hive 2 ever kept metadata of files: all others say
that they do not, in every release.
"""

from __future__ import annotations

from metastore.idl import (
    CacheFileMetadataResult,
    ClearFileMetadataResult,
    CmRecycleResponse,
    GetFileMetadataByExprResult,
    GetFileMetadataResult,
    PutFileMetadataResult,
)
from metastore.methods.forms.entry import Handler

METHODS: dict[str, Handler] = {
    "cm_recycle": lambda call, args: CmRecycleResponse(),
    "get_file_metadata": lambda call, args: GetFileMetadataResult(metadata={}, isSupported=False),
    "get_file_metadata_by_expr": lambda call, args: GetFileMetadataByExprResult(metadata={}, isSupported=False),
    "put_file_metadata": lambda call, args: PutFileMetadataResult(),
    "clear_file_metadata": lambda call, args: ClearFileMetadataResult(),
    "cache_file_metadata": lambda call, args: CacheFileMetadataResult(isSupported=False),
}

ANSWERS = {
    "cm_recycle": "an empty answer; nothing is recycled",
    "get_file_metadata": "no metadata, `isSupported` is false",
    "get_file_metadata_by_expr": "no metadata, `isSupported` is false",
    "put_file_metadata": "an empty answer; nothing is kept",
    "clear_file_metadata": "an empty answer",
    "cache_file_metadata": "`isSupported` is false",
    "get_type_all": "MetaException *Not yet implemented*, as in Java",
}
"""What methods of dead features answer, for the documentation."""
