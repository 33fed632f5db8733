"""Properties: their keys name maps, and maps are found by prefix and condition; on each database."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from metastore.errors import MetaError, NoSuchObject
from metastore.service.call.context import Call
from metastore.service.engines import properties
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database


def put(call: Call, **values: str) -> None:
    """Set properties; two underscores stand for a dot."""
    properties.put(call, "hms", {key.replace("__", "."): value for key, value in values.items()})


def get(call: Call, prefix: str | None = None, *names: str) -> dict[str, dict[str, str]]:
    return properties.get(call, "hms", prefix, None, names)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("name", ("hms", "name")), ("db.name", ("hms.db", "name")), ("db.t.name", ("hms.db.t", "name")),
        ("db.t.p.name", ("hms.db.t.p", "name")), ("db.t.p.name.more.yet", ("hms.db.t.p", "name.more.yet")), (r"d\.b.n", (r"hms.d\.b", "n")),
    ],
)  # fmt: skip
def test_parts_of_a_key_name_a_map(key: str, expected: tuple[str, str]) -> None:
    assert properties.split_key(key) == expected


@pytest.mark.parametrize("key", ["", ".", "db.", ".name", "db..name", "x" * 301, "db." + "x" * 301, "x" * 299 + ".name"])
def test_keys_without_a_name_or_too_long_are_refused(call: Call, key: str) -> None:
    with pytest.raises(MetaError, match="of a property"):
        properties.put(call, "hms", {"good": "1", key: "2"})
    assert get(call) == {}


def test_maps_are_found_by_prefix_and_names(call: Call) -> None:
    put(call, alone="1", db__a="2", db__t__a="3", db__t__b="4", db2__t__b="5", D__t="6", db__t__p__c="é\\ '\"%_")
    everything = {
        "hms": {"alone": "1"}, "D": {"t": "6"}, "db": {"a": "2"}, "db.t": {"a": "3", "b": "4"}, "db2.t": {"b": "5"},
        "db.t.p": {"c": "é\\ '\"%_"},
    }  # fmt: skip
    assert get(call) == get(call, "") == everything
    assert get(call, "db") == {key: each for key, each in everything.items() if key.startswith("db")}
    assert get(call, "db.t") == {"db.t": {"a": "3", "b": "4"}, "db.t.p": {"c": "é\\ '\"%_"}}
    assert get(call, "d_") == get(call, "d%") == get(call, "no") == {}
    assert get(call, "db", "b") == {"db.t": {"b": "4"}, "db2.t": {"b": "5"}}
    assert get(call, None, "alone", "t", "no") == {"hms": {"alone": "1"}, "D": {"t": "6"}}


def test_a_property_takes_its_new_value(call: Call) -> None:
    put(call, db__a="old", db__b="kept")
    put(call, db__a="new" * 100_000, db__c="")
    assert get(call) == {"db": {"a": "new" * 100_000, "b": "kept", "c": ""}}
    properties.put(call, "hms", {})
    with pytest.raises(MetaError, match="map of properties is null"):
        properties.put(call, "hms", None)


@pytest.mark.parametrize("condition", [None, "", " true "])
def test_a_condition_that_all_maps_meet_selects_all(call: Call, condition: str | None) -> None:
    put(call, db__a="1")
    assert properties.get(call, "hms", "db", condition, None) == {"db": {"a": "1"}}


def test_unreadable_conditions_and_unknown_names_are_refused(call: Call) -> None:
    put(call, db__a="1")
    with pytest.raises(MetaError, match=r"reads no condition on maps of properties: ask for all of 'db' in place of a == 1"):
        properties.get(call, "hms", "db", "a == 1", None)
    for name in (None, "", "HMS", "ptest"):
        with pytest.raises(NoSuchObject, match="There is no name space of properties"):
            properties.get(call, name, None, None, None)
        with pytest.raises(NoSuchObject, match="There is no name space of properties"):
            properties.put(call, name, {"a": "1"})


def test_of_those_that_set_one_at_a_time_the_last_stays(call: Call) -> None:
    start = threading.Barrier(8)

    def one(number: int) -> None:
        start.wait()
        keys = ["db.a", "db.b", "db.c"]
        properties.put(call, "hms", dict.fromkeys(keys if number % 2 else reversed(keys), str(number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))
    (found,) = get(call).values()
    assert list(found) == ["a", "b", "c"]
    assert len(set(found.values())) == 1


def test_the_cost_of_the_calls(call: Call, counts: StatementCounts) -> None:
    counts("set three", lambda: put(call, a="1", b="2", db__c="3"))
    counts("get", lambda: get(call))
