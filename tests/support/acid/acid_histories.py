"""Random histories of one table (id int, v int, k string): each step uses another door, and all readers equal a model after it.

A door is a function that does an action to the table. It is one way to write, and independent of the model. Readers return all rows.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from metastore.client import connect
from metastore.idl import ShowCompactRequest
from metastore.spark import AcidTable, sql, transaction
from metastore.spark.compaction.compactor import Compactor
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import WrongColumns
from metastore.spark.streaming_sink import write_stream
from metastore.spark.transaction.readers import close_all
from metastore.streaming import Rows, StreamingConnection
from tests.support.servers.cluster import Cluster, Model, Row
from tests.support.servers.waiting import until

SCHEMA = "id int, v int, k string"
WORDS = ("k0", "k1", "k2")
POOL = "spark"
"""The pool whose compactions Spark does; the server does all others."""
COMPACTED = ("compactor_worker_threads=1", "compactor_pool_timeout=1h", "compactor_aborted_age=3s")
"""Settings of a history's server: it compacts, and forgets an aborted dynamic insert after seconds, not after half a day."""


class Action(NamedTuple):
    """One action on the table: `rows` are written, `number` selects the rows that are changed."""

    kind: str
    rows: tuple[Row, ...] = ()
    number: int = 0


Door = Callable[[Action], None]
KnownDoor = tuple[Door, tuple[str, ...]]
"""A door and the kinds of actions that it can do."""
Reader = Callable[[], list[Row]]
KINDS = ("insert", "update", "delete", "merge", "overwrite", "truncate", "commit", "rollback")
"""`commit` and `rollback` are transactions of an update, a delete and an insert."""


def after(model: Model, action: Action, *, partitioned: bool) -> Model:
    """Return the rows of a table after an action."""
    kind, rows, number = action
    given: Model = {row[0]: row for row in rows}
    updated = {key: (key, v + 1, k) if v == number else (key, v, k) for key, v, k in model.values()}
    left = {key: row for key, row in model.items() if key % 7 != number}
    if kind == "update":
        return updated
    if kind == "delete":
        return left
    if kind == "commit":
        return {key: row for key, row in updated.items() if key % 7 != number} | given
    if kind == "overwrite":
        replaced = {row[2] for row in rows}
        return {key: row for key, row in model.items() if partitioned and row[2] not in replaced} | given
    return {"insert": model | given, "merge": model | given, "truncate": {}, "rollback": model}[kind]


def chosen(random_: random.Random, kind: str, model: Model) -> Action:
    """Return an action of a kind that fits the rows of the table: inserted rows are new, the rows of a merge are new or known."""
    start = max(model, default=0) + 1
    new = [(start + place, random_.randrange(5), random_.choice(WORDS)) for place in range(random_.randrange(1, 40))]
    if kind == "merge":
        known = random_.sample(sorted(model), min(len(model), 10))
        new += [(key, random_.randrange(5), model[key][2]) for key in known]
    if kind == "overwrite" and model:
        new += [(key, 9, model[key][2]) for key in random_.sample(sorted(model), len(model) // 2) if model[key][2] == new[0][2]]
        new = [row for row in new if row[2] == new[0][2]]
    return Action(kind, () if kind in ("update", "delete", "truncate") else tuple(new), random_.randrange(5))


def values(rows: Sequence[Row]) -> str:
    return ", ".join(f"({key}, {v}, '{k}')" for key, v, k in rows)


def statements(action: Action, table: str) -> list[str]:
    """Return an action as SQL of Spark and of Hive."""
    kind, rows, number = action
    structs = ", ".join(f"named_struct('id', {key}, 'v', {v}, 'k', '{k}')" for key, v, k in rows)
    by_kind = {
        "insert": f"INSERT INTO {table} VALUES {values(rows)}",
        "update": f"UPDATE {table} SET v = v + 1 WHERE v = {number}",
        "delete": f"DELETE FROM {table} WHERE id % 7 = {number}",
        "merge": (
            f"MERGE INTO {table} t USING (SELECT inline(array({structs}))) s ON t.id = s.id AND t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.k)"
        ),
        "overwrite": f"INSERT OVERWRITE TABLE {table} VALUES {values(rows)}",
        "truncate": f"TRUNCATE TABLE {table}",
    }
    if kind in by_kind:
        return [by_kind[kind]]
    return ["START TRANSACTION", by_kind["update"], by_kind["delete"], by_kind["insert"], kind.upper()]


@dataclass
class Doors:
    """The doors of a session on which SQL is enabled; `registered` is the session of the program that has the format `hive_acid`."""

    spark: SparkSession
    registered: SparkSession
    uri: str
    table: str
    folder: Path
    _numbers: list[int] = field(default_factory=list)

    def frame(self, rows: Sequence[Row]) -> DataFrame:
        return self.spark.createDataFrame(list(rows), SCHEMA)

    def by_sql(self, action: Action) -> None:
        for statement in statements(action, self.table):
            sql(self.spark, statement).collect()

    def by_table(self, action: Action) -> None:
        if action.kind in ("commit", "rollback"):
            with transaction(self.spark, self.uri) as txn:
                for part in (Action("update", (), action.number), Action("delete", (), action.number), Action("insert", action.rows)):
                    self._change(txn.table(self.table), part)
                if action.kind == "rollback":
                    txn.txn.abort()
            return
        self._change(AcidTable.forName(self.spark, self.table, self.uri), action)

    def _change(self, table: AcidTable, action: Action) -> None:
        kind, rows, number = action
        if kind == "update":
            table.update(f"v = {number}", {"v": "v + 1"})
        elif kind == "delete":
            table.delete(f"id % 7 = {number}")
        elif kind == "truncate":
            table.insert_overwrite(self.frame([]), partitions=self._partitions())
        elif kind == "merge":
            merge = table.merge(self.frame(rows), "target.id = source.id AND target.k = source.k")
            merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        else:
            (table.insert if kind == "insert" else table.insert_overwrite)(self.frame(rows))

    def _partitions(self) -> list[str]:
        with connect(self.uri) as client:
            database, name = self.table.split(".")
            return list(client.get_partition_names(database, name, -1))

    def by_format(self, action: Action) -> None:
        close_all()  # an overwrite in a process of its own waits for the readers of this one
        rows = self.registered.createDataFrame(list(action.rows), SCHEMA)
        writer = rows.coalesce(1).write.format("hive_acid").option("table", self.table).option("uri", self.uri)
        writer.mode("append" if action.kind == "insert" else "overwrite").save()

    def by_writer(self, action: Action) -> None:
        frame = self.frame(action.rows).select("id", "v", "k")
        frame.write.insertInto(self.table, overwrite=action.kind == "overwrite")

    def by_streaming(self, action: Action) -> None:
        """Do two commits and one abort, in one file that grows."""
        records = [dict(zip(("id", "v", "k"), row, strict=True)) for row in action.rows]
        half = len(records) // 2
        with StreamingConnection(self.uri, self.table, Rows()) as connection, connection.batch(3) as batch:
            with batch.transaction():
                batch.write(records[:half])
            batch.begin_next()
            batch.write(records[half:])
            batch.abort()
            with batch.transaction():
                batch.write(records[half:])

    def by_query(self, action: Action) -> None:
        """Write by a query of Structured Streaming."""
        self._numbers.append(len(self._numbers))
        source = self.folder / f"source{len(self._numbers)}"
        source.mkdir()
        (source / "rows.json").write_text("\n".join(f'{{"id": {key}, "v": {v}, "k": "{k}"}}' for key, v, k in action.rows))
        query = write_stream(
            self.spark.readStream.schema(SCHEMA).json(str(source)),
            self.table,
            str(self.folder / f"checkpoint{len(self._numbers)}"),
            uri=self.uri,
            trigger={"availableNow": True},
        )
        assert query.awaitTermination(300)
        assert query.exception() is None

    def doors(self) -> dict[str, KnownDoor]:
        """Return the doors by name, each with the kinds of actions that it can do."""
        return {
            "sql": (self.by_sql, KINDS),
            "table": (self.by_table, KINDS),
            "format": (self.by_format, ("insert", "overwrite")),
            "writer": (self.by_writer, ("insert", "overwrite")),
            "streaming": (self.by_streaming, ("insert",)),
            "query": (self.by_query, ("insert",)),
        }

    def readers(self) -> dict[str, Reader]:
        return {"sql": self._read_by_sql, "table": self._read_by_table, "format": self._read_by_format}

    def _read_by_sql(self) -> list[Row]:
        return _rows(sql(self.spark, f"SELECT id, v, k FROM {self.table}"))

    def _read_by_table(self) -> list[Row]:
        with AcidTable.forName(self.spark, self.table, self.uri) as table:
            return _rows(table.toDF())

    def _read_by_format(self) -> list[Row]:
        return _rows(self.registered.read.format("hive_acid").option("table", self.table).option("uri", self.uri).load())


def _rows(frame: DataFrame) -> list[Row]:
    return sorted((row.id, row.v, row.k) for row in frame.collect())


class History:
    """A table, its model, and the steps done so far, which a failed assertion shows."""

    def __init__(self, seed: object, doors: Mapping[str, KnownDoor], readers: Mapping[str, Reader], *, partitioned: bool) -> None:
        self.random = random.Random(str(seed))
        self.model: Model = {}
        self.partitioned = partitioned
        self.done: list[str] = []
        self._doors = doors
        self._readers = readers

    def step(self, beside: Callable[[Callable[[], None]], bool] | None = None) -> None:
        """Do one action through a random door and compare; `beside` is as in `step_through`."""
        self.step_through(self.random.choice(sorted(self._doors)), beside)

    def step_through(self, name: str, beside: Callable[[Callable[[], None]], bool] | None = None) -> None:
        """Do one action through a door and compare. `beside` runs it while a process is killed, and returns whether it succeeded."""
        door, kinds = self._doors[name]

        def run(action: Action) -> bool:
            if beside is not None:
                return beside(lambda: door(action))
            door(action)
            return True

        self.step_by(self.random.choice(kinds), run, name)

    def step_by(self, kind: str, run: Callable[[Action], bool], name: str = "") -> None:
        """Do one action and compare. `run` returns whether it succeeded; an action that failed is done as a whole, or not at all."""
        action = chosen(self.random, kind, self.model)
        self.done.append(f"{name}: {action.kind} {len(action.rows)} {action.number}")
        wanted = after(self.model, action, partitioned=self.partitioned)
        allowed = [wanted]
        if not run(action):
            allowed.append(self.model)
            if name == "streaming":  # two commits
                allowed.append(self.model | {row[0]: row for row in action.rows[: len(action.rows) // 2]})
        self.compare(allowed)

    def compare(self, allowed: Sequence[Model] | None = None) -> None:
        """Read through each door, and assert that all return the rows of one allowed model. This model is kept."""
        for name, read in self._readers.items():
            found = read()
            fitting = [model for model in allowed or [self.model] if sorted(model.values()) == found]
            assert fitting, (name, self.done, sorted((allowed or [self.model])[0].values()), found)
            allowed = [fitting[0]]
            self.model = fitting[0]


class CompactedTable:
    """A table `default.t` on a server that compacts, and its history by the doors of a session of Spark and further doors."""

    def __init__(
        self,
        cluster: Cluster,
        registered: SparkSession,
        keys: str,
        columns: str,
        seed: object,
        doors: Mapping[str, KnownDoor] | None = None,
        readers: Mapping[str, Reader] | None = None,
    ) -> None:
        self.cluster = cluster
        self.keys = keys
        cluster.make(keys, columns)
        self.session = cluster.spark
        own = Doors(self.session, registered, cluster.uri, "default.t", cluster.home)
        self.history = History(seed, own.doors() | dict(doors or {}), own.readers() | dict(readers or {}), partitioned=bool(keys))
        self.random = self.history.random

    def ask(self, pool: str | None = None) -> None:
        """Ask for a compaction in SQL. A compaction that is queued already, or a partition that is not there yet, is not an error."""
        partition = f" PARTITION (k = '{self.random.choice(WORDS)}')" if self.keys else ""
        kind = self.random.choice(("minor", "major"))
        with suppress(WrongStatement, WrongColumns):
            sql(self.session, f"ALTER TABLE t{partition} COMPACT '{kind}'" + (f" POOL '{pool}'" if pool else "")).collect()
        self.history.done.append(f"compact {kind}{partition} {pool}")

    def compact_by_spark(self) -> None:
        self.ask(POOL)
        Compactor(self.session, self.cluster.uri, pool=POOL).run_once()

    def kill_the_compactor(self) -> None:
        self.ask()
        for pid in self.cluster.server.compactors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.history.done.append("killed the server's compactor")

    def compact_by_chance(self) -> None:
        """Let the server or Spark compact, kill the server's compactor, or do nothing."""
        chance = self.random.random()
        if chance < 0.3:
            self.ask()
        elif chance < 0.45:
            self.compact_by_spark()
        elif chance < 0.6:
            self.kill_the_compactor()

    def beside_the_death_of_the_server(self, work: Callable[[], None]) -> bool:
        """Kill the server at a random moment of some work; return whether the work succeeded."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            wait([running], self.random.uniform(0, 3))
            self.cluster.kill_server()
            self.history.done.append("killed the server")
            return running.exception() is None

    def end(self) -> None:
        """Wait for the end of all compactions, and assert that the rows stay."""
        worker = Compactor(self.session, self.cluster.uri, pool=POOL)
        close_all()
        until(lambda: (worker.attempt(), self.cluster.unsettled()), lambda found: found == (None, []), seconds=180)
        self.history.compare()
        close_all()
        with connect(self.cluster.uri) as client:
            states = {each.state for each in client.show_compact(ShowCompactRequest()).compacts or []}
        assert states <= {"succeeded", "failed", "aborted"}, states
        assert not self.cluster.staging()
