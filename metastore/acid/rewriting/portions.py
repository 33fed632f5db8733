"""Divide rows of a table by partition and bucket. This module adds no partition and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from metastore.acid.buckets.hashing import buckets_of
from metastore.acid.values.types import arrow_type
from metastore.idl import Table
from metastore.rules.values.partition_names import make_partition_name
from metastore.rules.values.partition_values import read_value, text_of


class Portion(NamedTuple):
    """Rows of one partition ("" in a table without) and bucket (0 in a table without), without partition columns."""

    partition: str
    bucket: int
    rows: pa.RecordBatch


class Divider:
    """The division of a table's rows by partition and bucket.

    `fixed` names the one partition of all rows; without it each row has the partition columns after its data columns. Timestamps are
    wall-clock times of `zone`; only the hash of old tables depends on it.
    """

    def __init__(self, table: Table, *, fixed: str | None = None, zone: str = "UTC") -> None:
        self._fixed = fixed
        self._zone = zone
        self._data = [column.name.lower() for column in table.sd.cols]
        self._kinds = {column.name.lower(): column.type for column in table.sd.cols}
        self._keys = [(key.name.lower(), key.type) for key in table.partitionKeys or []] if fixed is None else []
        self._by = [name.lower() for name in table.sd.bucketCols or []]
        self.buckets = table.sd.numBuckets if self._by and (table.sd.numBuckets or 0) > 0 else 0
        """The number of buckets; 0 in a table that is not bucketed."""
        self._version = int((table.parameters or {}).get("bucketing_version") or 1)

    def divide(self, rows: pa.RecordBatch) -> list[Portion]:
        """Return rows, whose columns are the table's in its order, in portions. CanNotHash."""
        if not len(rows):
            return []
        partitions, names = self._partitions_of(rows)
        numbers = self._buckets_of(rows)
        data = rows.select(range(len(self._data)))
        places, inverse = np.unique(numbers.astype(np.int64) * len(names) + partitions, return_inverse=True)
        if len(places) == 1:
            return [Portion(names[places[0] % len(names)], int(places[0]) // len(names), data)]
        return [
            Portion(names[place % len(names)], int(place) // len(names), data.take(pa.array(np.flatnonzero(inverse == number))))
            for number, place in enumerate(places)
        ]

    def _partitions_of(self, rows: pa.RecordBatch) -> tuple[Any, Sequence[str]]:
        """Return the place of each row's partition in a list of names."""
        if not self._keys:
            return 0, [self._fixed or ""]
        columns = [rows.column(name).dictionary_encode("encode") for name, _ in self._keys]
        joined = np.zeros(len(rows), np.int64)
        for column in columns:
            joined = joined * len(column.dictionary) + np.asarray(column.indices)
        _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
        texts = [
            [text_of(kind, value) for value in column.dictionary.take(column.indices.take(pa.array(first))).to_pylist()]
            for column, (_, kind) in zip(columns, self._keys, strict=True)
        ]
        return self._named(inverse, [make_partition_name([name for name, _ in self._keys], row) for row in zip(*texts, strict=True)])

    @staticmethod
    def _named(places: Any, names: Sequence[str]) -> tuple[Any, Sequence[str]]:
        """Give one place to rows whose values share a name, such as an empty text and null."""
        single = {name: place for place, name in enumerate(dict.fromkeys(names))}
        return (places, names) if len(single) == len(names) else (np.array([single[name] for name in names])[places], list(single))

    def _buckets_of(self, rows: pa.RecordBatch) -> Any:
        if not self.buckets:
            return np.zeros(len(rows), np.int64)
        columns = [(rows.column(name), self._kinds[name]) for name in self._by]
        return buckets_of(columns, self.buckets, self._version, zone=self._zone)


def repeated(kind: str, text: str, count: int) -> pa.Array:
    """Return a column that repeats a partition's value `count` times; `kind` is Hive's type, `text` the partition's spelling.

    Null for a text that is not a value of the type. Timestamps are wall-clock times.
    """
    value = read_value(kind, text)
    if isinstance(value, tuple):
        moment, nanoseconds = value
        value = moment.replace(microsecond=nanoseconds // 1000)
    wanted = arrow_type(kind)
    try:
        return pa.repeat(pa.scalar(value, wanted), count)
    except pa.ArrowInvalid:
        return pa.nulls(count, wanted)
