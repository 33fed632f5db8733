"""Locations that are taken before they are used: the users who may put an object where another's table or database would be by default."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from metastore import idl
from metastore.service.authorization import location_grants
from metastore.service.authorizer import OWN, USE, Access, Authorizer, Who
from metastore.service.call.context import Metastore
from metastore.service.catalog.catalogs import create_startup_objects
from tests.service.authorization.callers import USER, As, Caller, bag, partition, refusal, table
from tests.support.catalog.catalog import MetastoreMaker

pytestmark = pytest.mark.on_one_database

SUFFIX = "5f3b9c0e7a1d4c22b8f6d0e1a2b3c4d5"
"""The suffix that a client such as Trino invents for the directory of an Iceberg table."""


@pytest.fixture
def mallory(root: Caller, as_user: As) -> Caller:
    """The user mallory, who may create in olga's database `shop` and, as everybody, in `default`, and owns the table `mine`."""
    for user in ("mallory", "bob"):
        root.grant_privileges(bag("CREATE", user, dbName="shop"))
    root.grant_privileges(bag("CREATE", "bob"))
    made = as_user("mallory")
    made.create_table(table("shop", "mine", keys=["k"]))
    return made


def home(root: Caller, name: str = "shop") -> str:
    return str(root.get_database(name).locationUri)


def external(name: str, location: str, database: str = "shop") -> idl.Table:
    made = table(database, name, location=location)
    made.tableType, made.parameters = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}
    return made


def ways_to(mallory: Caller, place: str, database: str) -> list[Callable[[], object]]:
    """Return every call by which a user puts something at a place: a table, a partition, a table's new location, Iceberg's metadata."""
    moved, iceberg = mallory.get_table("shop", "mine"), external("squat", f"{home(mallory, database)}/squat", database)
    moved.sd.location = place
    iceberg.parameters["metadata_location"] = f"{place}/metadata/0.json"
    return [
        lambda: mallory.create_table(external("squat", place, database)),
        lambda: mallory.create_table(external("squat", f"{place}/inside", database)),
        lambda: mallory.create_table(iceberg),
        lambda: mallory.create_table_req(idl.CreateTableRequest(table=external("squat", place, database))),
        lambda: mallory.translate_table_dryrun(idl.CreateTableRequest(table=external("squat", place, database))),
        lambda: mallory.add_partition(partition(mallory.get_table("shop", "mine"), "1", f"{place}/k=1")),
        lambda: mallory.alter_table("shop", "mine", moved),
    ]


@pytest.mark.parametrize("directory", ["hr.db", "HR.DB", "hr.db/people", "bobs.db/deep/er"])
def test_nobody_lies_where_a_database_would(mallory: Caller, root: Caller, as_user: As, directory: str) -> None:
    place = f"{home(root, 'default')}/{directory}"
    for way in ways_to(mallory, place, "default"):
        assert "type=DFS_URI" in refusal(way)
    as_user("bob").create_database(idl.Database(name="hr"))
    as_user("bob").create_database(idl.Database(name="bobs"))


@pytest.mark.parametrize("directory", ["report", "Report", "report/2026", "a-45-b"])
def test_nobody_lies_where_a_table_of_another_name_would(mallory: Caller, root: Caller, as_user: As, directory: str) -> None:
    place = f"{home(root)}/{directory}"
    for way in ways_to(mallory, place, "shop"):
        assert "type=DFS_URI" in refusal(way)
    for name in ("report", "a-b"):
        as_user("bob").create_table(table("shop", name))
    as_user("bob").create_table(table("shop", "given", location=f"{home(root)}/given"))


def test_nobody_takes_the_directory_of_the_database_itself(mallory: Caller, root: Caller, as_user: As) -> None:
    for name in ("orders", "prices", "mine"):
        root.drop_table("shop", name, True)
    assert "type=DFS_URI" in refusal(mallory.create_table, external("squat", home(root)))
    as_user("bob").create_table(table("shop", "given", location=f"{home(root)}/given"))


@pytest.mark.parametrize(
    ("name", "directory"),
    [("t", "t"), ("t", "T"), ("t", "t/deep"), ("t", f"t-{SUFFIX}"), ("a-b", "a-45-b"), ("t", "t.v0000005"), ("t", "_tmp.t")],
)
def test_a_table_lies_at_its_own_name_and_where_no_name_is(mallory: Caller, root: Caller, name: str, directory: str) -> None:
    mallory.create_table(external(name, f"{home(root)}/{directory}"))
    assert mallory.get_table("shop", name).sd.location == f"{home(root)}/{directory}"


def test_the_owner_of_the_table_of_a_name_may_use_its_place(mallory: Caller, root: Caller) -> None:
    place = f"{home(root)}/mine/more"
    mallory.create_table(external("more", place))
    moved = mallory.get_table("shop", "more")
    moved.sd.location = f"{home(root)}/mine/other"
    mallory.alter_table("shop", "more", moved)


def test_the_owner_of_a_database_places_tables_anywhere_in_it_but_over_databases(mallory: Caller, root: Caller, as_user: As) -> None:
    olga = as_user("olga")
    changed = root.get_database("shop")
    changed.ownerName, changed.ownerType = "olga", USER
    root.alter_database("shop", changed)
    olga.create_table(external("far", f"{home(root)}/raw/2026"))
    assert "type=DFS_URI" in refusal(olga.create_table, external("inner", f"{home(root)}/hr.db"))
    assert "type=DFS_URI" in refusal(mallory.create_table, external("raw2", f"{home(root)}/raw/2027"))
    default = root.get_database("default")
    default.ownerName, default.ownerType = "olga", USER
    root.alter_database("default", default)
    assert "type=DFS_URI" in refusal(olga.create_table, external("squat", f"{home(root, 'default')}/hr.db/x", "default"))


def test_a_right_to_the_place_is_enough(mallory: Caller, root: Caller, server: Metastore) -> None:
    assert server.authorizer is not None
    for place, database in ((f"{home(root)}/report", "shop"), (f"{home(root, 'default')}/hr.db", "default")):
        location_grants.grant(server.database, "mallory", USER, place)
        server.authorizer.renew()
        mallory.create_table(external("granted", f"{place}/x", database))


def test_a_squatter_from_before_keeps_nobody_from_the_database_of_another_name(mallory: Caller, root: Caller, as_user: As) -> None:
    """A table that is there already, made by an admin or by an older release, is in the way: users make no database over it."""
    place = f"{home(root, 'default')}/hr.db/people"
    old = external("people", place, "default")
    old.owner = "mallory"
    root.create_table(old)
    bob = as_user("bob")
    assert "type=DFS_URI" in refusal(bob.create_database, idl.Database(name="hr"))
    bob.create_database(idl.Database(name="hr2"))
    mallory.alter_table("default", "people", mallory.get_table("default", "people"))
    mallory.drop_table("default", "people", False)
    bob.create_database(idl.Database(name="hr"))


@pytest.mark.parametrize("given", [True, False])
def test_an_admin_is_warned_in_the_log(mallory: Caller, root: Caller, as_user: As, capsys: pytest.CaptureFixture[str], given: bool) -> None:
    warehouse, warning = home(root, "default"), "an admin puts a table or database into another's directory"
    as_user("bob").create_table(table("shop", "bobs"))
    capsys.readouterr()
    root.create_table(external("free", f"{home(root)}/free" if given else ""))
    assert warning not in capsys.readouterr().out
    lies_in_bobs = external("over", f"{home(root)}/bobs/x")
    root.create_table(lies_in_bobs)
    out = capsys.readouterr().out
    assert warning in out
    assert "object=hive.shop.over" in out
    assert "user=root" in out
    squat = external("squat", f"{warehouse}/hr.db/x", "default")
    root.create_table(squat)
    changed = root.get_table("default", "squat")
    changed.owner = "mallory"
    root.alter_table("default", "squat", changed)
    capsys.readouterr()
    root.create_database(idl.Database(name="hr", locationUri=f"{warehouse}/hr.db" if given else None))
    out = capsys.readouterr().out
    assert warning in out
    assert "object=hive.hr" in out


class Places(Authorizer):
    """Allows everything but the use of locations, ownership of others' objects and administration."""

    def __init__(self, _config: object) -> None:
        pass

    def allowed(self, who: Who, asked: Sequence[Access]) -> list[bool]:
        return [
            each.privilege not in (USE, OWN, "ADMINISTER") or (each.owner is not None and each.owner.name == who.user) for each in asked
        ]


def test_the_rule_holds_for_every_authorizer(make_metastore: MetastoreMaker) -> None:
    made = make_metastore(authorization="tests.service.authorization.test_taken_places:Places")
    create_startup_objects(made)
    mallory = Caller(made, "mallory")
    warehouse = home(mallory, "default")
    for directory in ("hr.db", "hr.db/x", "report"):
        assert "type=DFS_URI" in refusal(mallory.create_table, external("squat", f"{warehouse}/{directory}", "default"))
    mallory.create_table(external("squat", f"{warehouse}/squat", "default"))
    mallory.create_database(idl.Database(name="hr"))
