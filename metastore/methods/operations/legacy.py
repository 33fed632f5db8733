"""Methods of features that are switched off in this server: they answer as a server without the feature.

Change management (`cm_recycle`) is for clusters that replicate. Only the HBase store of Hive 2 ever kept metadata of files: in every
release all other stores answer that they do not.
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
from metastore.methods.forms.entry import Shadowed, reads
from metastore.methods.forms.rules import OPEN

METHODS = (
    reads("cm_recycle", lambda call, args: CmRecycleResponse(), OPEN, shadowed=Shadowed.NEVER, dead="an empty answer; nothing is recycled"),
    reads(
        "get_file_metadata",
        lambda call, args: GetFileMetadataResult(metadata={}, isSupported=False),
        OPEN,
        dead="no metadata, `isSupported` is false",
    ),
    reads(
        "get_file_metadata_by_expr",
        lambda call, args: GetFileMetadataByExprResult(metadata={}, isSupported=False),
        OPEN,
        dead="no metadata, `isSupported` is false",
    ),
    reads(
        "put_file_metadata",
        lambda call, args: PutFileMetadataResult(),
        OPEN,
        shadowed=Shadowed.AFTER_CHANGES,
        dead="an empty answer; nothing is kept",
    ),
    reads(
        "clear_file_metadata", lambda call, args: ClearFileMetadataResult(), OPEN, shadowed=Shadowed.AFTER_CHANGES, dead="an empty answer"
    ),
    reads(
        "cache_file_metadata",
        lambda call, args: CacheFileMetadataResult(isSupported=False),
        OPEN,
        shadowed=Shadowed.AFTER_CHANGES,
        dead="`isSupported` is false",
    ),
)
