"""Compactions: their types, states and transitions; the rules when one is due or given up, and for the kept history. Stores nothing.

Source: Hive's TxnStore, CompactionState, InitiatorBase, CheckFailedCompactionsHandler, PurgeCompactionHistoryFunction and StringableMap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from metastore.errors import MetaError
from metastore.idl import CompactionMetricsMetricType, CompactionType

INITIATED, WORKING, READY, FAILED, SUCCEEDED = "i", "w", "r", "f", "s"
DID_NOT_INITIATE, REFUSED, ABORTED = "a", "c", "x"
QUEUED = (INITIATED, WORKING)
"""States in which an object has at most one entry."""

PENDING = (INITIATED, WORKING, READY)
COMPACTED = (SUCCEEDED, READY)
"""States in which the compacted files can be read."""

ENDED = (FAILED, SUCCEEDED, DID_NOT_INITIATE, REFUSED, ABORTED)
STATE_TEXTS = {
    INITIATED: "initiated",
    WORKING: "working",
    READY: "ready for cleaning",
    FAILED: "failed",
    SUCCEEDED: "succeeded",
    DID_NOT_INITIATE: "did not initiate",
    REFUSED: "refused",
    ABORTED: "aborted",
}
FOLLOWS: dict[str, tuple[str, ...]] = {
    WORKING: (INITIATED,),
    INITIATED: (WORKING,),
    READY: (WORKING,),
    SUCCEEDED: PENDING,
    FAILED: PENDING,
    REFUSED: PENDING,
    ABORTED: (INITIATED, WORKING),
}
"""Allowed states before each state."""

SERVERS_OWN = "metastore-arrow"
"""The version, as the queue shows it, of the workers that servers run: they end at once when their entry is aborted."""
UNATTENDED_MS = 3_600_000
"""Milliseconds after which a waiting entry needs an operator's attention."""
MOST_DEATHS = 3
"""The number of workers that die at work on one entry before it fails."""

MAJOR, MINOR, REBALANCE, ABORT_CLEANUP, SMART = "a", "i", "r", "c", "s"
TYPES: dict[int, str] = {
    CompactionType.MAJOR: MAJOR,
    CompactionType.MINOR: MINOR,
    CompactionType.REBALANCE: REBALANCE,
    CompactionType.ABORT_TXN_CLEANUP: ABORT_CLEANUP,
    CompactionType.SMART_OPTIMIZE: SMART,
}
TYPE_NUMBERS = {letter: number for number, letter in TYPES.items()}
METRICS = frozenset(CompactionMetricsMetricType._NAMES_TO_VALUES.values())  # noqa: SLF001 - thriftpy2 has no public name for it
DEFAULT_POOL = "default"
"""The pool of entries that name none, as clients see it."""

NO_AUTO_COMPACTION = "no_auto_compaction"
NO_CLEANUP = "no_cleanup"
POOL = "hive.compactor.worker.pool"
THRESHOLD = "compactorthreshold."
"""The beginning of a table's parameter that replaces one of Hive's settings; the setting's name follows it."""


def type_letter(number: int | None) -> str:
    """Return the letter of a type. MetaError for one that is unknown or absent."""
    if number not in TYPES:
        raise MetaError(f"Unexpected compaction type {number}: use one of {', '.join(CompactionType._NAMES_TO_VALUES)}")  # noqa: SLF001
    return TYPES[number]


class Thresholds(NamedTuple):
    """The limits of automatic compactions: more deltas than `number`, or deltas of more than `ratio` of the base's size."""

    number: int
    ratio: float

    def of_table(self, parameters: Mapping[str, str]) -> Thresholds:
        """Return the thresholds with a table's parameters applied. MetaError for a value that is not a number."""
        found: list[float] = [self.number, self.ratio]
        for place, name in enumerate(("hive.compactor.delta.num.threshold", "hive.compactor.delta.pct.threshold")):
            text = parameters.get(THRESHOLD + name)
            if text is not None:
                try:
                    found[place] = float(text)
                except ValueError as error:
                    raise MetaError(f"table parameter {THRESHOLD}{name}={text} is not a number: correct or remove it") from error
        return Thresholds(int(found[0]), found[1])


def due(deltas: int, delta_size: int, base_size: int, bases: int, thresholds: Thresholds, *, only_major: bool) -> str | None:
    """Return the type of the compaction that is due, None for none.

    `bases` counts the bases that no reader needs any more; `only_major` is for objects that can not be compacted in parts.
    """
    has_base = base_size > 0 or delta_size == 0
    if has_base:
        big = delta_size > thresholds.ratio * base_size if base_size else False
        if big or (delta_size == 0 and bases > 0):
            return MAJOR
    if deltas <= thresholds.number:
        return None
    return MINOR if has_base and not only_major else MAJOR


def gave_up(outcomes: Sequence[tuple[str, int]], threshold: int, retry_time: int, now: int) -> bool:
    """Return whether no compaction of an object is started, since the last ones failed.

    `outcomes` are (state, time queued) with the last first, of which the first `threshold` count. When the last attempt is older than
    `retry_time`, a new one is started. Times are in milliseconds.
    """
    looked_at = outcomes[:threshold]
    if threshold <= 0 or len(looked_at) < threshold or any(state != FAILED for state, _ in looked_at):
        return False
    return retry_time <= 0 or max(queued for _, queued in looked_at) + retry_time >= now


class Past(NamedTuple):
    """An entry of the history. `start` is the time in milliseconds at which it started or, if it never did, was queued."""

    id: int
    catalog: str
    database: str
    table: str
    partition: str | None
    state: str
    type: str
    start: int


def surplus(history: Iterable[Past], keep: Mapping[str, int], old: int) -> list[int]:
    """Return the ids of the entries to remove; `history` is sorted by object, the last first, `keep` has the kept number of each state.

    Entries that did not succeed and are older than `old` are removed, too, once a later compaction has replaced them.
    """
    out: list[int] = []
    current: tuple[str, str, str, str | None] | None = None
    seen: dict[str, int] = {}
    major = minor = False
    for entry in history:
        if entry[1:5] != current:
            current, seen, major, minor = entry[1:5], {}, False, False
        seen[entry.state] = seen.get(entry.state, 0) + 1
        made_up = entry.state != SUCCEEDED and entry.start < old and (major or (minor and entry.type == MINOR))
        if seen[entry.state] > keep.get(entry.state, 0) or made_up:
            out.append(entry.id)
        if entry.state == SUCCEEDED:
            major, minor = major or entry.type == MAJOR, minor or entry.type != MAJOR
    return out


def write_properties(properties: Mapping[str, str] | None) -> str | None:
    """Write properties as Hive's workers read them: `count:length:name length:value ..` without the blank; None for none."""
    if not properties:
        return None
    return f"{len(properties)}:" + "".join(f"{len(text)}:{text}" for pair in properties.items() for text in pair)


def read_properties(text: str | None) -> dict[str, str]:
    """Read a text of `write_properties`. ValueError for any other text."""
    if not text:
        return {}
    count, _, rest = text.partition(":")
    parts: list[str] = []
    for _ in range(2 * int(count)):
        length, _, rest = rest.partition(":")
        parts.append(rest[: int(length)])
        rest = rest[int(length) :]
    return dict(zip(parts[::2], parts[1::2], strict=True))


class Waiting(NamedTuple):
    """Entries that wait for a worker: put back by workers of `version`, or all others where it is None.

    The oldest of the `number` entries was queued at `oldest`, in milliseconds.
    """

    version: str | None
    number: int
    oldest: int


def unattended(waiting: Iterable[Waiting], taken: Mapping[str | None, int], now: int) -> list[str]:
    """Return texts about the entries that no worker takes, with the remedy.

    Such entries have waited for an hour in which no worker that can do them took any entry. `taken` has, by version, the time in
    milliseconds at which a worker last took an entry.
    """
    out = []
    for each in waiting:
        last = max((at for version, at in taken.items() if each.version is None or version != each.version), default=0)
        if now - max(each.oldest, last) <= UNATTENDED_MS:
            continue
        hours = (now - each.oldest) // 3_600_000
        number = f"{each.number} wait, the oldest for {hours} h" if hours < 48 else f"{each.number} wait, the oldest for {hours // 24} d"
        if each.version is None:
            out.append(f"no worker takes compactions: {number}; set compactor_worker_threads=1, or run `metastore compactor`")
        else:
            out.append(f"no worker on Spark takes the compactions that {each.version} put back: {number}; run `metastore compactor`")
    return out


COLUMNS = {
    "compactionid": "id",
    "id": "id",
    "dbname": "database",
    "database": "database",
    "tabname": "table",
    "table": "table",
    "partname": "partition",
    "partition": "partition",
    "type": "type",
    "state": "state",
    "workerhost": "worker",
    "workerid": "worker",
    "worker_id": "worker",
    "enqueuetime": "enqueued_ms",
    "enqueue_time": "enqueued_ms",
    "starttime": "started_ms",
    "start": "started_ms",
    "end": "ended_ms",
    "duration": "ended_ms",
    "hadoopjobid": "hadoop_job",
    "hadoop_job_id": "hadoop_job",
    "errormessage": "error",
    "error_message": "error",
    "initiatorhost": "initiator",
    "initiatorid": "initiator",
    "initiator_id": "initiator",
    "poolname": "pool",
    "pool_name": "pool",
    "txnid": "transaction_id",
    "txn_id": "transaction_id",
    "nexttxnid": "next_transaction_id",
    "next_txn_id": "next_transaction_id",
    "committime": "committed_ms",
    "commit_time": "committed_ms",
    "hightestwriteid": "highest_write_id",
    "highest_write_id": "highest_write_id",
    "cleaner_start": "cleaner_started_ms",
    "run_as": "run_as",
    "worker_version": "worker_version",
    "initiator_version": "initiator_version",
}
"""Column names of SHOW COMPACTIONS and of Hive's tables, without `CC_`, and the columns that hold them here."""


def read_order(text: str | None) -> list[tuple[str, bool]]:
    """Read `"CC_TABLE" desc, tabname`: (column, descending). MetaError for an unknown column or anything else."""
    out: list[tuple[str, bool]] = []
    for part in (text or "").split(",") if text and text.strip() else ():
        words = part.replace('"', " ").replace("'", " ").replace("`", " ").split()
        name = words[0].lower() if words else ""
        column = COLUMNS.get(name.removeprefix("cc_").removeprefix("cq_"))
        direction = words[1].lower() if len(words) > 1 else "asc"
        if column is None or direction not in {"asc", "desc"} or len(words) > 2:
            raise MetaError(f"Compactions can not be ordered by {part.strip()!r}: give columns of SHOW COMPACTIONS, each with ASC or DESC")
        out.append((column, direction == "desc"))
    return out


WAITS = "waits until all see"
"""The beginning of the reason for which an entry without a failure is not cleaned yet."""


def waits_for_compactors(transactions: Iterable[int], reader: int) -> str:
    """Return the reason of a compaction that is cleaned after others of the same files: an open reader does not see their results."""
    found = ", ".join(map(str, sorted(transactions)))
    return f"{WAITS} the results of other compactions of the same files, in transactions {found}; transaction {reader} does not"
