"""While many clients change things through two servers and some changes fail, every reader sees the same log, growing at its end."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from metastore import idl
from metastore.client import Client, connect
from metastore.idl import NotificationEvent, NotificationEventRequest
from tests.races.test_creation import partition, table
from tests.support.servers.servers import serving

WRITERS, ROUNDS = 8, 12


def write(client: Client, number: int) -> list[tuple[str, str]]:
    """Make changes, of which some fail. Return the type and table of each event of the successful changes."""
    made = []
    for turn in range(ROUNDS):
        name = f"t{number}_{turn}"
        client.create_table(table("d", name))
        made.append(("CREATE_TABLE", name))
        client.add_partitions([partition("d", name, "1", "1"), partition("d", name, "2", "2")])
        made.append(("ADD_PARTITION", name))
        for wrong in (
            lambda name=name: client.create_table(table("d", name)),
            lambda name=name: client.add_partitions([partition("d", name, "3", "3"), partition("d", name, "1", "1")]),
        ):
            try:
                wrong()
            except idl.AlreadyExistsException:
                continue
            raise AssertionError("it must fail")
        if turn % 3 == 0:
            client.drop_table("d", name, True)
            made.append(("DROP_TABLE", name))
    return made


def poll(client: Client, ended: threading.Event) -> list[NotificationEvent]:
    """Read the log to its end repeatedly, until all writers have ended and there are no more events."""
    seen: list[NotificationEvent] = []
    while True:
        last_turn = ended.is_set()
        after = seen[-1].eventId if seen else 0
        current = client.get_current_notificationEventId().eventId
        found = client.get_next_notification(NotificationEventRequest(lastEvent=after, maxEvents=50)).events
        assert current >= after, "the end of the log never moves back"
        assert [event.eventId for event in found] == list(range(after + 1, after + 1 + len(found)))
        assert len(found) >= min(50, current - after), "all events up to the end are there"
        seen += found
        if last_turn and not found:
            return seen


def test_all_readers_see_one_log_without_gaps(database_url: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(
                "--db", database_url, "--workers", "2", "--warehouse", str(tmp_path / "warehouse"), home=tmp_path / f"home{number}",
            ))
            for number in range(2)
        ]  # fmt: skip
        clients = [stack.enter_context(connect(servers[number % 2].uri)) for number in range(WRITERS + 3)]
        clients[0].create_database(idl.Database(name="d"))
        pool = stack.enter_context(ThreadPoolExecutor(len(clients)))
        ended = threading.Event()
        readers = [pool.submit(poll, client, ended) for client in clients[WRITERS:]]
        try:
            made = [each for one in pool.map(write, clients[:WRITERS], range(WRITERS)) for each in one]
        finally:
            ended.set()
        logs = [reader.result() for reader in readers]
    for other in logs[1:]:
        assert other == logs[0]
    logged = [(event.eventType, event.tableName) for event in logs[0] if event.tableName is not None]
    assert Counter(logged) == Counter(made)
    for name in {name for _, name in made}:
        assert [each for each in logged if each[1] == name] == [each for each in made if each[1] == name], "in the order of the changes"
