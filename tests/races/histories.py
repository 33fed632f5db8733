"""Find the anomalies that snapshot isolation forbids in the observations of clients of transactional tables. No server is called.

A table is a list. A transaction appends by writing under its write id, and reads the appends of all write ids that its snapshot sees.
Times are of one clock, the clients'.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Txn:
    """A client's record of a transaction: its write ids, and for each table that it read the mark and the unseen ids of its snapshot."""

    id: int
    asked: float = 0.0
    seen: float = 0.0
    ending: float = 0.0
    ended: float = 0.0
    outcome: str = "open"
    reads: dict[str, tuple[int, frozenset[int]]] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)

    def sees(self, table: str, other: Txn) -> bool:
        mark, unseen = self.reads[table]
        return other.writes[table] <= mark and other.writes[table] not in unseen


def judge(history: list[Txn]) -> list[str]:
    """Return the anomalies of a history, each with its name and the transactions that show it."""
    found: list[str] = []
    writers: dict[str, list[Txn]] = defaultdict(list)
    for each in history:
        for table in each.writes:
            writers[table].append(each)
    visible: dict[int, list[Txn]] = {}
    for reader in history:
        others = {other.id: other for table in reader.reads for other in writers[table] if other is not reader}
        seen: dict[int, Txn] = {}
        for other in others.values():
            shared = [table for table in reader.reads if table in other.writes]
            sees = [reader.sees(table, other) for table in shared]
            if any(sees):
                seen[other.id] = other
                if other.outcome != "committed":
                    found.append(f"G1a: {reader.id} reads of {other.id}, which is {other.outcome}")
                elif other.ending >= reader.seen:
                    found.append(f"G1c: {reader.id} reads of {other.id} before that commits")
                if not all(sees):
                    found.append(f"G1b: {reader.id} reads a part of {other.id}")
            elif other.outcome == "committed" and other.ended < reader.asked:
                found.append(f"stale: {reader.id} does not read of {other.id}, which was committed before")
        visible[reader.id] = list(seen.values())
    versions: dict[str, list[Txn]] = {}
    for table, all_writers in writers.items():
        committed = [each for each in all_writers if each.outcome == "committed"]
        order = sorted(committed, key=lambda each: sum(each.sees(table, other) for other in committed if other is not each))
        versions[table] = order
        for place, each in enumerate(order):
            wrong = [other.id for number, other in enumerate(order) if other is not each and each.sees(table, other) != (number < place)]
            if wrong:
                found.append(f"G0, lost update: {each.id} and {wrong} both changed {table}")
    for reader in history:
        for table in reader.reads:
            following = next((each for each in versions.get(table, ()) if each is not reader and not reader.sees(table, each)), None)
            if following is not None and _leads(following, reader, visible):
                found.append(f"G-single: {reader.id} overlooks {following.id} in {table} and depends on it")
    return found


def _leads(first: Txn, last: Txn, visible: dict[int, list[Txn]]) -> bool:
    """Return whether reads lead from one transaction to the other. Commit times ascend along them, so older transactions are skipped."""
    looked, todo = {last.id}, [last]
    while todo:
        for each in visible[todo.pop().id]:
            if each is first:
                return True
            if each.ending >= first.ending and each.id not in looked:
                looked.add(each.id)
                todo.append(each)
    return False
