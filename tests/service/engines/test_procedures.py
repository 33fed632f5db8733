"""Stored procedures and packages of HPL/SQL, on each database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from metastore.errors import InvalidOperation, MetaError, NoSuchObject
from metastore.idl import Catalog, Database, DatabaseType, Package, StoredProcedure
from metastore.service.call.context import Call
from metastore.service.catalog import catalogs, databases
from metastore.service.engines import procedures
from metastore.store.schema import engines as schema_engine
from tests.support.catalog.catalog import make_database
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database

Kind = procedures.Kind
KINDS: list[Kind] = [StoredProcedure, Package]


def made(kind: Kind, name: str | None = "P1", database: str | None = "default", text: str | None = "BEGIN END", **fields: Any) -> Any:
    values: dict[str, Any] = {"catName": "hive", "dbName": database, "ownerName": "bob", **fields}
    if kind is Package:
        return Package(packageName=name, header=text, body=text, **values)
    return StoredProcedure(name=name, source=text, **values)


def put(call: Call, new: Any) -> None:
    procedures.put(call, new, type(new))


def get(call: Call, kind: Kind, name: str = "P1", database: str = "default", catalog: str | None = "hive") -> Any:
    read = procedures.get_package if kind is Package else procedures.get_procedure
    return read(call, catalog, database, name)


def names(call: Call, kind: Kind, database: str | None, catalog: str | None = "hive") -> list[str]:
    return procedures.names(call, kind, catalog, database)


@pytest.fixture(params=KINDS, ids=["procedure", "package"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


def test_it_comes_back_as_it_was_put(call: Call, kind: Kind) -> None:
    put(call, made(kind, database=" Default ", catName="HIVE"))
    assert get(call, kind, database="DEFAULT") == made(kind)
    with pytest.raises(NoSuchObject, match=r"HPL/SQL \w+ default\.p1 does not exist"):
        get(call, kind, "p1")
    put(call, made(kind, text="new", ownerName=None))
    assert get(call, kind, catalog=None) == made(kind, text="new", ownerName="alice")


def test_a_procedure_and_a_package_may_have_one_name(call: Call) -> None:
    for each in KINDS:
        put(call, made(each))
    procedures.drop(call, StoredProcedure, "hive", "default", "P1")
    assert (names(call, StoredProcedure, "default"), names(call, Package, "default")) == ([], ["P1"])


def test_names_are_listed_by_database_and_catalog(call: Call, kind: Kind) -> None:
    catalogs.create_catalog(call, Catalog(name="other", locationUri=f"{call.warehouse.root}/other"))
    make_database(call, "a")
    for name, database, catalog in (("z", "default", None), ("B", "default", "hive"), ("x", "a", "hive"), ("far", "default", "other")):
        put(call, made(kind, name, database, catName=catalog))
    assert names(call, kind, "Default") == ["B", "z"]
    assert names(call, kind, None) == names(call, kind, None, None) == ["x", "B", "z"]
    assert names(call, kind, None, "other") == ["far"]
    assert names(call, kind, "nope") == []


def test_procedures_that_can_not_be_stored_are_refused(call: Call, kind: Kind) -> None:
    with pytest.raises(NoSuchObject, match=r"There is no database hive\.nope"):
        put(call, made(kind, database="nope"))
    for wrong in (made(kind, None), made(kind, ""), made(kind, database=None), made(kind, text=None)):
        with pytest.raises(MetaError):
            put(call, wrong)
    with pytest.raises(MetaError, match="is null: send one"):
        procedures.put(call, None, kind)
    databases.create_database(call, Database(name="far", type=DatabaseType.REMOTE, connector_name="c"))
    with pytest.raises(MetaError, match="Operation test not supported for REMOTE database far"):
        put(call, made(kind, database="far"))
    assert names(call, kind, None) == []


def test_to_drop_a_missing_object_is_not_an_error(call: Call, kind: Kind) -> None:
    put(call, made(kind))
    for name in ("p1", "P1", "P1"):
        procedures.drop(call, kind, "hive", "default", name)
    assert names(call, kind, "default") == []
    with pytest.raises(MetaError, match="needs the names of its database and itself"):
        procedures.drop(call, kind, "hive", "default", None)


def test_they_go_with_their_database_if_that_may_go(call: Call, kind: Kind) -> None:
    make_database(call, "d")
    put(call, made(kind, database="d"))
    put(call, made(kind, "other"))
    what = "packages" if kind is Package else "stored procedures"
    with pytest.raises(InvalidOperation, match=f"Database d is not empty. One or more {what} exist"):
        databases.drop_database(call, "hive", "d", delete_data=True, cascade=False)
    databases.drop_database(call, "hive", "d", delete_data=True, cascade=True)
    assert names(call, kind, None) == ["other"]
    table = schema_engine.packages if kind is Package else schema_engine.procedures
    assert call.database.read(lambda session: session.number(sa.select(sa.func.count()).select_from(table))) == 1


def test_a_catalog_with_one_is_not_dropped(call: Call, kind: Kind) -> None:
    catalogs.create_catalog(call, Catalog(name="other", locationUri=f"{call.warehouse.root}/other"))
    put(call, made(kind, catName="other"))
    with pytest.raises(InvalidOperation, match="drop them first"):
        catalogs.drop_catalog(call, "other")


def together(*work: Callable[[], object]) -> list[Exception | None]:
    """Run functions at the same moment. Return the error of each, None for a success."""
    start = threading.Barrier(len(work))

    def one(each: Callable[[], object]) -> Exception | None:
        start.wait()
        try:
            each()
        except Exception as error:  # noqa: BLE001  # it is looked at
            return error
        return None

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(one, work))


def test_of_those_that_put_one_at_a_time_the_last_stays(call: Call, kind: Kind) -> None:
    new = [made(kind, text=str(number)) for number in range(8)]
    assert together(*(lambda each=each: put(call, each) for each in new)) == [None] * 8  # type: ignore[misc]  # bound now
    assert get(call, kind) in new
    assert names(call, kind, "default") == ["P1"]


def test_none_is_left_of_a_database_that_goes_meanwhile(call: Call, kind: Kind) -> None:
    for _ in range(5):
        make_database(call, "d")
        put_error, drop_error = together(
            lambda: put(call, made(kind, database="d")),
            lambda: databases.drop_database(call, "hive", "d", delete_data=False, cascade=True),
        )
        assert drop_error is None
        assert put_error is None or isinstance(put_error, NoSuchObject)
        assert names(call, kind, None) == []


def test_the_cost_of_the_calls(call: Call, counts: StatementCounts) -> None:
    counts("add", lambda: put(call, made(Package)))
    counts("replace", lambda: put(call, made(Package)))
    counts("get", lambda: get(call, Package))
    counts("list", lambda: names(call, Package, "default"))
    counts("drop", lambda: procedures.drop(call, Package, "hive", "default", "P1"))
