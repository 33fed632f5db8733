"""Join column statistics of several partitions, or of old and new data, into one. Never reads or stores them.

Source: Hive's columnstats.aggr and columnstats.merge. Over partitions the number of distinct values is estimated between its bounds, as
Hive does unless it is set to read bit vectors; of old and new data it is counted by their bit vectors. A histogram is not joined. A count
that is unknown in one part is unknown of all, except distinct values and lengths, which are estimated from the parts where they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metastore.idl import ColumnStatisticsData, ColumnStatisticsObj
from metastore.rules.statistics import distinct_sketches
from metastore.rules.statistics.statistics_kinds import in_kind, kind_of, order_of, with_data

SUMMED = ("numNulls", "numTrues", "numFalses")
GREATEST = ("maxColLen", "avgColLen")
UNKNOWN = -1
"""The count that clients such as Impala write for an unknown one."""
MOST = 2**63 - 1
"""The greatest count that a reply holds: greater ones are returned as this."""


def are_joinable(old: ColumnStatisticsObj, new: ColumnStatisticsObj) -> bool:
    """Return whether statistics of old and new data can be merged: a text's can not be merged with a number's."""
    return in_kind(old.statsData, kind_of(new.statsData)) is not None


def merge(old: ColumnStatisticsObj, new: ColumnStatisticsObj) -> ColumnStatisticsObj:
    """Return the joined statistics of old and new data, in the kind of the new. ValueError unless they are joinable.

    Without two bit vectors that can be joined, the number of distinct values is the greater one of the two.
    """
    kind = kind_of(new.statsData)
    data = in_kind(old.statsData, kind)
    if kind is None or data is None:
        raise ValueError(f"Statistics of {new.colName} as {kind_of(old.statsData)} and as {kind} can not be joined")
    before = with_data(new, data)
    joined = aggregate([before, new])
    data, *parts = (getattr(each.statsData, kind) for each in (joined, before, new))
    if hasattr(data, "numDVs") and (sketch := distinct_sketches.merged(*(part.bitVectors for part in parts))):
        data.bitVectors, count = sketch
        data.numDVs = max(data.numDVs or 0, count)
    return joined


def aggregate(columns: Sequence[ColumnStatisticsObj], tuner: float = 0.0) -> ColumnStatisticsObj:
    """Return statistics of one column over all partitions in `columns`, at least one and all of one kind (`statistics_kinds.alike`).

    Distinct values: lower + (upper - lower) * `tuner`, from 0 to 1, where the lower bound is the greatest count of a partition and the
    upper bound the sum of all.
    """
    first = columns[0]
    kind = kind_of(first.statsData)
    if kind is None or len(columns) == 1:
        return first
    parts = [getattr(column.statsData, kind) for column in columns]
    data = type(parts[0])()
    for _, name, *_ in data.thrift_spec.values():
        setattr(data, name, _joined(kind, name, [getattr(part, name) for part in parts], tuner))
    return ColumnStatisticsObj(colName=first.colName, colType=first.colType, statsData=ColumnStatisticsData(**{kind: data}))


def _joined(kind: str, name: str, values: Sequence[Any], tuner: float) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if name in SUMMED:
        return UNKNOWN if min(known) < 0 else min(sum(known), MOST)
    if name in GREATEST:
        return max(known)
    if name == "numDVs":
        return _distinct([value for value in known if value >= 0], tuner)
    if name == "lowValue":
        return min(known, key=order_of(kind))
    if name == "highValue":
        return max(known, key=order_of(kind))
    return None


def _distinct(known: Sequence[int], tuner: float) -> int:
    """Return the number of distinct values of parts with these counts, UNKNOWN without any."""
    if not known:
        return UNKNOWN
    lower, upper = max(known), sum(known)
    return min(lower + int((upper - lower) * tuner), MOST)
