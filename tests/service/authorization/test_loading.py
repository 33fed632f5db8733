"""The authorizer that the settings choose, and the faults of an operator's own class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from metastore import idl
from metastore.config import Config
from metastore.errors import MetaError, PermissionDenied
from metastore.methods import METHODS
from metastore.methods.documents import privileges
from metastore.methods.forms.rules import Want, found_by, needs
from metastore.service.authorization.grants import Grants
from metastore.service.authorization.loading import load
from metastore.service.authorizer import DATABASE, SEE, Access, Authorizer, Who
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.store.core.database import Database
from metastore.wire.calls.guard import Guard
from tests.service.authorization.callers import Caller, table
from tests.support.catalog.catalog import MetastoreMaker, call_of, make_database

pytestmark = pytest.mark.on_one_database

DOCUMENT = Path(__file__).parents[3] / "docs" / "privileges.md"
HERE = "tests.service.authorization.test_loading"


class OnlyOlga(Authorizer):
    """Allows olga everything, and lets other users see her objects."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def allowed(self, who: Who, asked: Sequence[Access]) -> list[bool]:
        return [who.user == "olga" or (each.privilege == SEE and each.owner is not None and each.owner.name == "olga") for each in asked]


class Failing(OnlyOlga):
    def allowed(self, who: Who, asked: Sequence[Access]) -> list[bool]:  # noqa: ARG002  # the contract
        raise RuntimeError("out of order")


class TooShort(OnlyOlga):
    def allowed(self, who: Who, asked: Sequence[Access]) -> list[bool]:  # noqa: ARG002  # the contract
        return []


class Vague(OnlyOlga):
    def allowed(self, who: Who, asked: Sequence[Access]) -> list[Any]:  # noqa: ARG002  # the contract
        return ["perhaps"] * len(asked)


class Unmade(OnlyOlga):
    def __init__(self, config: Config) -> None:  # noqa: ARG002  # the contract
        raise OSError("no file")


def test_the_settings_choose(database: Database) -> None:
    assert load(Config(), database) is None
    assert isinstance(load(Config(authorization="grants"), database), Grants)
    assert isinstance(load(Config(authorization=f"{HERE}:OnlyOlga"), database), OnlyOlga)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("grant", "is unknown: write none, grants, file, opa, ranger or package.module:Class"),
        ("no.such:Class", "can not be loaded: ModuleNotFoundError"),
        (f"{HERE}:Nothing", "can not be loaded: AttributeError"),
        ("metastore.config:Config", "is not an Authorizer"),
        (f"{HERE}:Unmade", "can not be made: OSError: no file"),
    ],
)
def test_a_class_that_can_not_be_loaded_stops_the_start(database: Database, name: str, message: str) -> None:
    with pytest.raises(MetaError, match=message):
        load(Config(authorization=name), database)


def test_a_class_of_ones_own_is_asked(make_metastore: MetastoreMaker) -> None:
    server = make_metastore(authorization=f"{HERE}:OnlyOlga")
    create_startup_objects(server)
    olga = Caller(server, "olga")
    olga.create_database(idl.Database(name="shop"))
    olga.create_table(table("shop", "hers"))
    olga.create_table(table("shop", "anybodys", "bob"))
    assert Caller(server, "bob").get_all_tables("shop") == ["hers"]
    with pytest.raises(MetaError, match="DROPTABLE"):
        Caller(server, "bob").drop_table("shop", "hers", True)


@pytest.mark.parametrize("name", ["Failing", "TooShort", "Vague"])
def test_one_that_gives_no_answer_allows_nothing(make_metastore: MetastoreMaker, name: str) -> None:
    server = make_metastore()
    create_startup_objects(server)
    make_database(call_of(server), "shop")
    broken = make_metastore(authorization=f"{HERE}:{name}")
    for call in (lambda caller: caller.get_database("shop"), lambda caller: caller.drop_database("shop", True, True)):
        with pytest.raises(Exception):  # noqa: B017, PT011  # any error is a refusal
            call(Caller(broken, "olga"))
    assert "shop" in METHODS["get_all_databases"].handler(call_of(server), None)


def test_an_entry_that_can_not_leave_hidden_objects_out_refuses(make_metastore: MetastoreMaker) -> None:
    server = make_metastore(authorization=f"{HERE}:OnlyOlga")
    create_startup_objects(server)
    make_database(call_of(server), "shop")
    rule = needs(found_by("", lambda _call, _args: [Want((SEE,), DATABASE, "hive", "shop")]))
    args = idl.service.get_database_args(name="shop")
    assert server.authorizer is not None
    call = call_of(server, "get_database", "bob")
    with pytest.raises(PermissionDenied):
        Guard(server.authorizer).run(rule, METHODS["get_database"].handler, call, args)
    assert call.refused


def test_the_document_is_current() -> None:
    assert DOCUMENT.read_text() == privileges(), "run `python -m metastore.methods privileges > docs/privileges.md`"
