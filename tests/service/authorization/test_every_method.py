"""A user without rights calls every method with the names of another user's objects. Nothing changes, and no reply shows an object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from metastore.client import Client, connect
from metastore.methods import METHODS
from metastore.store.core.all_tables import metadata
from metastore.store.core.database import Database
from tests.service.authorization.everything import HUSH, OWNER, TEXTS, Estate, Names, arguments, outcome
from tests.support.servers.servers import serving

OWN_EFFECT = {"open_txns", "set_ugi", "setMetaConf"}
"""Methods by which everybody makes something of their own."""
COUNTS_ITSELF = {"getCounters"}
"""Methods whose answer grows with each call."""


def as_user(uri: str, user: str, stack: ExitStack) -> Client:
    client = stack.enter_context(connect(uri))
    client.set_ugi(user, [])
    return client


class World:
    """A server on a database, and three clients: an admin, the owner of the objects, and a user without rights."""

    def __init__(self, uri: str, database: Database, stack: ExitStack, folder: Path) -> None:
        self.uri, self.database = uri, database
        self.admin, self.owner, self.nobody = (as_user(uri, user, stack) for user in ("root", OWNER, "mallory"))
        self.admin.get_metastore_db_uuid()
        self.estate = Estate(self.admin, self.owner, str(folder))

    def clear(self) -> None:
        """Remove the objects that earlier calls have made under new names."""
        outcome(lambda: self.admin.drop_table("kept_database", "new_table", True))
        outcome(lambda: self.admin.drop_database("new_database", True, True))

    def dump(self) -> dict[str, list[Any]]:
        """Return all rows that calls may change, by table."""
        out = {}
        for table in metadata.sorted_tables:
            if table.name != "leases":
                chosen = sa.select(*(column for column in table.columns if column.name not in ("heartbeat_ms", "last_access_time")))
                out[table.name] = sorted(map(repr, self.database.read(lambda session, chosen=chosen: session.rows(chosen))))  # type: ignore[misc]
        return out


@pytest.fixture(scope="session", params=["sqlite", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("postgresql", "mysql"))])
def database_kind(request: pytest.FixtureRequest) -> str:
    """SQLite, and among the slow tests the other kinds, on which each of these tests takes ten seconds."""
    return str(request.param)


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    options = {
        "db": database_url, "authorization": "grants", "admin_users": "root", "workers": "1", "warehouse": str(tmp_path / "warehouse"),
        "client_capability_check": "false", "compactor_initiator": "false", "compactor_cleaner": "false", "compactor_housekeeper": "false",
    }  # fmt: skip
    settings = [part for name, value in options.items() for part in ("--set", f"{name}={value}")]
    with ExitStack() as stack:
        server = stack.enter_context(serving(*settings, home=tmp_path))
        database = Database(database_url)
        stack.callback(database.close)
        yield World(server.uri, database, stack, tmp_path)


ABSENT = Names("lost_catalog", "lost_database", "lost_table", "lost_other", "lost_function", "lost_schema", "lost_role", 0, 0, 0, 0)


def blotted(reply: tuple[str, Any], names: Names) -> str:
    """Return a reply as text with placeholders for the names that were sent: replies to different names then compare equal."""
    text = repr(reply)
    for field, value in names._asdict().items():
        if isinstance(value, str):
            text = text.replace(value, f"<{field}>")
    return text


def send(client: Client, method: str, names: Names) -> tuple[str, Any]:
    args = arguments(method, names)
    try:
        return outcome(lambda: client.call(method, **{field[1]: getattr(args, field[1]) for field in args.thrift_spec.values()}))
    except ConnectionResetError:  # how a release ends a call without the names that it needs
        client.set_ugi("mallory", [])
        return "end", None


def test_a_user_without_rights_changes_nothing_and_learns_nothing(world: World) -> None:
    names, before, wrong = world.estate.make(), world.dump(), list[str]()
    for method in sorted(METHODS):
        if method in ("set_ugi", "shutdown"):
            continue
        absent = ABSENT._replace(**{field: getattr(names, field) for field in ("transaction", "lock", "compaction", "table_key")})
        reply, other = send(world.nobody, method, names), send(world.nobody, method, absent)
        if HUSH in repr(reply):
            wrong.append(f"{method} tells {reply}")
        if method.startswith(("create_", "alter_")):  # an object with a new name in the other user's database
            send(world.nobody, method, fresh(names))
        if method not in OWN_EFFECT:
            if blotted(reply, names) != blotted(other, absent) and method not in COUNTS_ITSELF:
                wrong.append(f"{method} tells that something is there: {reply} instead of {other}")
            after = world.dump()
            changed = [name for name in after if after[name] != before[name]]
            if changed:
                wrong.append(f"{method} changed {changed}: {reply}")
                names = world.estate.make()
        before = world.dump()
    assert not wrong, "\n".join(wrong)


WHOLE = ("@hive#", "@hive#!", "@hive#*", "@ hive #", "@hive#kept_*", "*", "")
"""Texts that name no database, or possibly all databases of a catalog."""


def test_no_way_to_name_a_catalog_shows_hidden_objects(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a database may contain its catalog: the authorizer decides on the name that the handler reads from it."""
    names, before, wrong = world.estate.make(), world.dump(), list[str]()
    numbers = {field: getattr(names, field) for field in ("transaction", "lock", "compaction", "table_key")}
    methods = sorted(set(METHODS) - OWN_EFFECT - COUNTS_ITSELF - {"shutdown"})
    for method, text in ((method, text) for method in methods for text in WHOLE):
        for pattern in ("pattern", "db_patterns"):
            monkeypatch.setitem(TEXTS, pattern, text)
        reply = send(world.nobody, method, ABSENT._replace(database=text, **numbers))
        if HUSH in repr(reply) or "kept_" in repr(reply).replace("kept_*", ""):
            wrong.append(f"{method} of {text} tells {reply}")
    for method, text in ((method, text) for method in methods for text in ("@hive#{}", "@hive# {} ", "@HIVE#{}", " @hive#{}", " {} ")):
        absent = ABSENT._replace(**numbers)
        reply, other = (send(world.nobody, method, each._replace(database=text.format(each.database))) for each in (names, absent))
        if HUSH in repr(reply) or blotted(reply, names) != blotted(other, absent):
            wrong.append(f"{method} of {text} tells {reply} instead of {other}")
    after = world.dump()
    assert not wrong, "\n".join(wrong)
    assert [name for name in after if after[name] != before[name]] == []


FAILS_FOR_ADMIN = {
    "get_delegation_token": "issues no delegation tokens",
    "renew_delegation_token": "without a login",
    "cancel_delegation_token": "base64",
    **dict.fromkeys(("add_token", "get_token", "remove_token", "get_all_token_identifiers"), "a client without login"),
    **dict.fromkeys(("add_master_key", "update_master_key", "remove_master_key", "get_master_keys"), "a client without login"),
    **dict.fromkeys(("getOption", "get_materialization_invalidation_info"), "has no value"),
    **dict.fromkeys(("mark_compacted", "mark_failed", "mark_refused"), "is succeeded"),
    "add_primary_key": "already exists",
    "grant_revoke_privileges": "already granted",
    **dict.fromkeys(("set_hadoop_jobid", "update_compactor_state"), "Internal error"),
    "add_foreign_key": "no primary or unique key",
    "drop_ischema": "it has versions",
    "drop_constraint": "does not exist for the associated table",
    "exchange_partitions": "already exists",
    "scheduled_query_progress": "There is no execution",
    "seed_write_id": "has had some already",
    "get_type": "not found",
    "get_type_all": "Not yet implemented",
    "update_creation_metadata": "is not a materialized view",
}
"""Methods whose arguments fit no object of the estate, and the handler's messages about them."""


def fresh(names: Names) -> Names:
    """Return names in the same database that nothing has yet."""
    return names._replace(catalog="new_catalog", table="new_table", function="new_function", schema="new_schema", role="new_role")


@pytest.mark.slow
def test_the_same_calls_of_an_admin_work(world: World) -> None:
    wrong, made, is_whole = [], world.estate.make(), True
    for method in sorted(METHODS):
        if method in ("set_ugi", "shutdown"):
            continue
        if not is_whole:
            made = world.estate.make()
        names, is_whole = made, not METHODS[method].changes
        if method.startswith("create_"):
            names = fresh(names)._replace(database="new_database") if "database" in method else fresh(names)
            world.clear()
        kind, reply = send(world.admin, method, names)
        if kind != "value" and FAILS_FOR_ADMIN.get(method, "no reason") not in reply:
            wrong.append(f"{method}: {kind} {reply}")
    assert not wrong, "\n".join(wrong)
