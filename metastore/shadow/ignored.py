"""The fields in which two metastores with the same content may differ.

The methods that a secondary does not get are marked in their entries (`metastore.methods.forms.entry`).
"""

from __future__ import annotations

NUMBERS = {
    "txn_high_water_mark": "each side counts its transactions",
    "min_open_txn": "likewise",
    "open_txns": "likewise",
    "abortedBits": "likewise",
    "validTxnList": "likewise",
    "txnId": "likewise",
    "txnid": "likewise",
    "nextTxnId": "likewise",
    "lockid": "each side counts its locks",
}
"""Fields, of any struct, that are compared only where changes are sent to both sides, with the reason."""

FIELDS = {
    "id": "rows have their own numbers on each side",
    "createTime": "the moment at which each side made the object",
    "grantTime": "likewise",
    "createdAt": "likewise",
    "lastAccessTime": "written by some servers at each read",
    "lastAnalyzed": "when statistics were stored",
    "materializationTime": "when a view was filled",
    "acquiredat": "the moment of a lock",
    "lastheartbeat": "likewise",
    "startedTime": "the moment of a transaction",
    "lastHeartbeatTime": "likewise",
    "eventId": "each side counts its events",
    "eventTime": "the moment of an event",
    "enqueueTime": "the moment of a compaction's step",
    "start": "likewise",
    "endTime": "likewise",
    "cleanerStart": "likewise",
    "commitTime": "likewise",
    "bitVectors": "sent by Java with hive.stats.fetch.bitvector alone",
    "histogram": "sent by Java with hive.stats.fetch.kll alone",
    "errormessage": "sent by Hive 4 alone",
    "TableMeta.ownerName": "likewise",
    "TableMeta.ownerType": "likewise",
    "CreationMetadata.sourceTables": "likewise",
    "isStatsCompliant": "shows whether statistics fit the write ids that a client sent, which are of the primary",
}
"""Fields that are never compared, with the reason: of any struct, or of the struct before the dot."""

STANDS_FOR: dict[str, object] = {"writeId": -1, "type": 1, "ns": "default", "poolName": "default", "catName": "hive"}
"""The values of fields that are not set, because a server before Hive 4 does not have or set them: of a table, a database, a resource plan,
a compaction, a list of partitions."""

PARAMETERS = {
    "transient_lastDdlTime": "the moment of the last change on each side",
    "last_modified_time": "likewise",
    "numFilesErasureCoded": "written by Hive 3 and 4 alone",
    "DO_NOT_UPDATE_STATS": "kept by Hive 3, removed by Hive 4",
    "bucketing_version": "added by Hive 3's server to objects made without it",
}
"""Entries of `parameters` that are not compared, with the reason."""

PARAMETERS_STAND_FOR = {"numFiles": "0", "totalSize": "0"}
"""The values of missing entries of `parameters`. Only the side that finds the directory writes them; the other has made it, empty."""
