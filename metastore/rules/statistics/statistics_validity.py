"""Decide which statistics are exact, and for which reader: the mark COLUMN_STATS_ACCURATE, and write ids of transactional tables. Never
stores any.

The row of a transactional table or partition holds the write id under which its statistics were written last. They are valid for a query
whose snapshot sees that write id. A writer whose snapshot does not see it does not see the counted rows either: after its
change no statistics are exact. Source: Hive's StatsSetupConst, ObjectStore.isCurrentStatsValidForTheQuery and verifyStatsChangeCtx.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import orjson

from metastore.errors import MetaError
from metastore.idl import ObjectDictionary
from metastore.rules.transactions.snapshots import Snapshot, parse_table

ACCURATE = "COLUMN_STATS_ACCURATE"
_BASIC, _COLUMNS = "BASIC_STATS", "COLUMN_STATS"
_ASKED = "setStatsStateForCreateTable"
_SPARK = "spark.sql.statistics."
_COUNTS = ("numFiles", "numRows", "totalSize", "rawDataSize", "numFilesErasureCoded")


class StatisticsWriter(NamedTuple):
    """The transaction in which a request is made: its write id, and the write ids of the table that it sees."""

    write_id: int = -1
    seen: Snapshot | None = None

    def in_transaction(self) -> bool:
        return self.write_id > 0 and self.seen is not None


NOBODY = StatisticsWriter()
"""A request outside of transactions, as of clients before Hive 3."""


def writer(write_id: int | None, text: str | None) -> StatisticsWriter:
    """Return the transaction of a request, with its snapshot. MetaError for a text that is not a snapshot of a table."""
    return StatisticsWriter(write_id or -1, seen_by(text))


def seen_by(text: str | None) -> Snapshot | None:
    """Read the snapshot of a table that a request may have. MetaError."""
    return parse_table(text)[1] if text else None


def _mark(parameters: Mapping[str, str]) -> dict[str, dict[str, str] | str]:
    text = parameters.get(ACCURATE) or "{}"
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if isinstance(found, dict):
        return found
    return {_BASIC: "true"} if text.lower() == "true" else {}


def is_exact(parameters: Mapping[str, str]) -> bool:
    """Return whether the number of rows is exact."""
    return str(_mark(parameters).get(_BASIC)).lower() == "true"


def exact_columns(parameters: Mapping[str, str]) -> set[str]:
    """Return the columns whose statistics are exact."""
    found = _mark(parameters).get(_COLUMNS)
    return set(found) if isinstance(found, dict) else set()


def with_columns(parameters: dict[str, str], columns: Iterable[str]) -> dict[str, str]:
    """Return parameters that mark these columns' statistics as exact: the same object if they already do."""
    text = parameters.get(ACCURATE)
    mark = _mark_with(text or "{}", tuple(columns))
    return parameters if mark == text else {**parameters, ACCURATE: mark}


@lru_cache(maxsize=16)
def _mark_with(text: str, columns: tuple[str, ...]) -> str:
    """Return a mark with these columns. It is cached: hundreds of partitions of one request have the same mark."""
    before = {ACCURATE: text}
    mark = _mark(before)
    mark[_COLUMNS] = dict.fromkeys(sorted({*exact_columns(before), *columns}), "true")
    return orjson.dumps(mark).decode()


def without_columns(parameters: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """Return parameters that do not mark these columns' statistics as exact."""
    known = exact_columns(parameters)
    if not known:
        return dict(parameters)
    mark = _mark(parameters)
    stays = sorted(known - set(columns))
    if stays:
        mark[_COLUMNS] = dict.fromkeys(stays, "true")
    else:
        del mark[_COLUMNS]
    return {**parameters, ACCURATE: orjson.dumps(mark).decode()} if mark else without_mark(parameters)


def wanted_columns(dictionary: ObjectDictionary | None) -> list[str] | None:
    """Return the columns of a new table whose statistics are marked as exact while it is empty; None unless the client asks for that."""
    found = (dictionary.values or {}).get(_ASKED) if dictionary is not None else None
    try:
        asked = orjson.loads(found[0]) if found else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(asked, dict) or asked.get("enabled") is not True:
        return None
    return list(asked.get("columnNames") or ())


def of_empty(parameters: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """Return the parameters of a table without rows: all its statistics are exact."""
    return with_columns({**parameters, **dict.fromkeys(_COUNTS, "0"), ACCURATE: orjson.dumps({_BASIC: "true"}).decode()}, columns)


def of_other_data(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a table or partition with a new location, without the counts of the data at the old one.

    Counts that the request changes are of the new data.
    """
    return {key: value for key, value in after.items() if value != before.get(key) or not counts(key)}


def counts(parameter: str) -> bool:
    """Return whether a parameter counts the data, or marks such counts exact: Hive's, and Spark's."""
    return parameter in _COUNTS or parameter == ACCURATE or parameter.startswith(_SPARK)


def without_mark(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return parameters that mark no statistics as exact."""
    return {key: value for key, value in parameters.items() if key != ACCURATE}


def is_valid(parameters: Mapping[str, str], write_id: int | None, seen: Snapshot) -> bool:
    """Return whether statistics with these parameters and write id hold for a query with a snapshot; without a write id they always do."""
    return write_id is None or write_id < 1 or (is_exact(parameters) and seen.is_valid(write_id))


def _may_replace(write_id: int | None, seen: Snapshot | None) -> bool:
    """Return whether a writer sees the rows that the replaced statistics count: they are not from another open writer."""
    return write_id is None or write_id < 1 or (seen is not None and (seen.is_valid(write_id) or seen.is_aborted(write_id)))


def after_change(
    label: str, before: Mapping[str, str], after: Mapping[str, str], write_id: int | None, by: StatisticsWriter, *, columns: bool = False
) -> dict[str, str]:
    """Return the parameters that a change of a transactional table or partition stores; `write_id` is of the statistics before.

    With `columns`, statistics of columns were written. MetaError for a change of the mark outside of a transaction, except its removal.
    """
    if not by.in_transaction():
        same = (before.get(ACCURATE) or "").lower() == (after.get(ACCURATE) or "").lower()
        if is_exact(after) and (columns or not same):
            raise MetaError(
                f"Cannot change stats state for a transactional table {label} without providing the transactional write state for "
                f"verification: send writeId and validWriteIdList (new write ID {by.write_id}; current state {before.get(ACCURATE)}; "
                f"new state {after.get(ACCURATE)})"
            )
        if not columns:
            return dict(after)
    return dict(after) if _may_replace(write_id, by.seen) else without_mark(after)


def new_write_id(before: int | None, by: StatisticsWriter) -> int:
    """Return the write id that the statistics have after a change."""
    if by.in_transaction():
        return by.write_id
    return -1 if before is None else before
