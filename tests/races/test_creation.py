"""Many clients create the same object at once through two servers. Exactly one call succeeds, and the object's directory exists."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from metastore import idl
from metastore.client import Client, connect
from metastore.idl import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from tests.support.servers.servers import serving

CLIENTS = 50
Work = Callable[[Client], object]


def table(database: str, name: str) -> Table:
    sd = StorageDescriptor(
        cols=[FieldSchema(name="a", type="int")], inputFormat="in", outputFormat="out",
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}), parameters={},
    )  # fmt: skip
    keys = [FieldSchema(name="p", type="string"), FieldSchema(name="q", type="string")]
    return Table(dbName=database, tableName=name, sd=sd, parameters={}, partitionKeys=keys, tableType="MANAGED_TABLE")


def partition(database: str, name: str, *values: str) -> Partition:
    return Partition(values=list(values), dbName=database, tableName=name, sd=table(database, name).sd, parameters={})


class Race:
    """Fifty connected clients, spread over two servers, that start at one moment."""

    def __init__(self, clients: Sequence[Client], pool: ThreadPoolExecutor) -> None:
        self.clients = clients
        self._pool = pool

    def run(self, work: Callable[[int], Work]) -> Counter[str]:
        """Let client number n do `work(n)`. Return the number of each outcome: "ok", or the name of the error."""
        start = threading.Barrier(len(self.clients))

        def one(number: int) -> str:
            call = work(number)
            start.wait()
            try:
                call(self.clients[number])
            except Exception as error:  # noqa: BLE001  # the kind is the outcome
                return f"{type(error).__name__}: {error}" if not isinstance(error, idl.AlreadyExistsException) else "AlreadyExists"
            return "ok"

        return Counter(self._pool.map(one, range(len(self.clients))))


@pytest.fixture
def race(database_url: str, tmp_path: Path) -> Iterator[Race]:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(
                "--db", database_url, "--workers", "1", "--warehouse", str(tmp_path / "warehouse"), home=tmp_path / f"home{number}",
            ))
            for number in range(2)
        ]  # fmt: skip
        clients = [stack.enter_context(connect(servers[number % 2].uri)) for number in range(CLIENTS)]
        pool = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        yield Race(clients, pool)


ONE_WINS = Counter({"ok": 1, "AlreadyExists": CLIENTS - 1})


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_one_client_makes_a_database_a_table_and_a_partition(race: Race, tmp_path: Path, rounds: int) -> None:
    warehouse = tmp_path / "warehouse"
    for number in range(rounds):
        name = f"d{number}"
        assert race.run(lambda _, name=name: lambda client: client.create_database(Database(name=name))) == ONE_WINS  # type: ignore[misc]
        place = warehouse / f"{name}.db"
        assert place.is_dir()
        assert race.run(lambda _, name=name: lambda client: client.create_table(table(name, "t"))) == ONE_WINS  # type: ignore[misc]
        assert (place / "t").is_dir()
        assert race.run(lambda _, name=name: lambda client: client.add_partition(partition(name, "t", "1", "1"))) == ONE_WINS  # type: ignore[misc]
        assert (place / "t" / "p=1" / "q=1").is_dir()
        reader = race.clients[number % CLIENTS]
        assert reader.get_database(name).locationUri == f"file:{place}"
        assert reader.get_all_tables(name) == ["t"]
        assert reader.get_partition_names(name, "t", -1) == ["p=1/q=1"]


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_losers_do_not_take_the_parent_of_others(race: Race, tmp_path: Path, rounds: int) -> None:
    """Half of the clients add partitions that share a parent directory, the others fail after they made it."""
    race.clients[0].create_table(table("default", "t"))
    base = tmp_path / "warehouse" / "t"
    (base / "file").touch()
    for number in range(rounds):

        def add(client_number: int, number: int = number) -> Work:
            good = partition("default", "t", str(number), str(client_number))
            if client_number % 2:
                return lambda client: client.add_partitions([good])
            bad = partition("default", "t", str(number), "x")
            bad.sd.location = f"file:{base}/file/below"
            return lambda client: client.add_partitions([good, bad])

        outcomes = race.run(add)
        assert outcomes["ok"] == CLIENTS // 2, outcomes
        assert sum(count for outcome, count in outcomes.items() if "is not a directory or unable to create one" in outcome) == CLIENTS // 2
        expected = {f"q={client_number}" for client_number in range(1, CLIENTS, 2)}
        assert {path.name for path in (base / f"p={number}").iterdir()} == expected
        names = race.clients[1].get_partition_names_ps("default", "t", [str(number)], -1)
        assert {name.partition("/")[2] for name in names} == expected


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_one_client_renames_a_table(race: Race, tmp_path: Path, rounds: int) -> None:
    reader = race.clients[0]
    for number in range(rounds):
        reader.create_table(table("default", f"old{number}"))
        (tmp_path / "warehouse" / f"old{number}" / "data").write_text("precious")
        renamed = reader.get_table("default", f"old{number}")
        renamed.tableName = f"new{number}"
        outcomes = race.run(lambda _, old=f"old{number}", new=renamed: lambda client: client.alter_table("default", old, new))  # type: ignore[misc]
        assert outcomes["ok"] == 1, outcomes
        assert all(outcome == "ok" or outcome.startswith("InvalidOperationException") for outcome in outcomes), outcomes
        assert reader.get_all_tables("default") == sorted(f"new{each}" for each in range(number + 1))
        assert (tmp_path / "warehouse" / f"new{number}" / "data").read_text() == "precious"
        assert not (tmp_path / "warehouse" / f"old{number}").exists()
