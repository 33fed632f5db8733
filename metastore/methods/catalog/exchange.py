"""Methods that move partitions between tables."""

from __future__ import annotations

from typing import Any

from metastore.errors import MetaError
from metastore.idl import Partition
from metastore.methods.catalog import partition_rules as rules
from metastore.methods.forms import unpack
from metastore.methods.forms.entry import changes
from metastore.service.call.context import Call
from metastore.service.catalog.exchange import exchange_partitions


def _exchange(call: Call, args: Any) -> list[Partition]:
    sides = [(args.source_db, args.source_table_name), (args.dest_db, args.dest_table_name)]
    if args.partitionSpecs is None or any(part is None for side in sides for part in side):
        raise MetaError("The DB and table name for the source and destination tables, and the partition specs must not be null.")
    source, target = (unpack.table(call, database, name) for database, name in sides)
    return exchange_partitions(call, args.partitionSpecs, source, target)


def _exchange_one(call: Call, args: Any) -> Partition:
    """Exchange partitions, and return an empty one for any number of them, as Java's server does."""
    _exchange(call, args)
    return Partition()


METHODS = (
    changes("exchange_partition", _exchange_one, rules.EXCHANGE),
    changes("exchange_partitions", _exchange, rules.EXCHANGE),
)
