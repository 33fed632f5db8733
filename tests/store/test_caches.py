"""Cached values: their number is bounded, and a caller can not change them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from copy import copy, deepcopy
from typing import Any

import pytest

from metastore.errors import MetaError
from metastore.idl import FieldSchema
from metastore.service.call.context import Call
from metastore.service.catalog.partitions.partitions import get_partitions
from metastore.service.catalog.tables.tables import get_table
from metastore.store.catalog import dependents, descriptors
from metastore.store.core.caches import Caches, FrozenDict, FrozenList, Region, frozen
from metastore.store.core.database import Session
from metastore.store.schema import model as schema
from tests.support.acid.txns import count, rows
from tests.support.catalog.catalog import add_partitions, make_table


def test_the_oldest_value_goes_first() -> None:
    region: Region[int, str] = Region(2)
    for key in (1, 2, 1, 3):
        region.put(key, str(key))
    assert [region.get(key) for key in (1, 2, 3)] == [None, "2", "3"]
    assert len(region) == 2
    region.discard(2)
    region.discard(2)
    assert len(region) == 1
    region.clear()
    assert len(region) == 0


def test_values_that_may_be_outdated_are_forgotten_and_the_others_stay() -> None:
    caches = Caches()
    for region in vars(caches).values():
        region.put("key", "value")
    caches.discard_changed()
    assert {name: len(region) for name, region in vars(caches).items()} == {
        "columns": 1,
        "storage_formats": 1,
        "tables": 0,
        "lock_queues": 0,
    }


CHANGES: list[Callable[[Any], object]] = [
    lambda value: value["list"].append(1),
    lambda value: value["list"].extend([1]),
    lambda value: value["list"].insert(0, 1),
    lambda value: value["list"].remove(1),
    lambda value: value["list"].pop(),
    lambda value: value["list"].clear(),
    lambda value: value["list"].sort(),
    lambda value: value["list"].reverse(),
    lambda value: value["list"].__setitem__(0, 2),
    lambda value: value["list"].__delitem__(0),
    lambda value: value["list"].__iadd__([1]),
    lambda value: value["list"].__imul__(2),
    lambda value: value["list"][1].update(b=1),
    lambda value: value.pop("list"),
    lambda value: value.popitem(),
    lambda value: value.clear(),
    lambda value: value.setdefault("b", 1),
    lambda value: value.__setitem__("b", 1),
    lambda value: value.__delitem__("list"),
    lambda value: value.__ior__({"b": 1}),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_frozen_value_refuses_each_change(change: Callable[[Any], object]) -> None:
    value = frozen({"list": [1, {"a": "b"}]})
    with pytest.raises(TypeError, match="copy it"):
        change(value)
    assert value == {"list": [1, {"a": "b"}]}


@pytest.mark.parametrize("copied", [copy, deepcopy])
def test_a_copy_of_a_frozen_value_can_be_changed(copied: Callable[[Any], Any]) -> None:
    for value in (FrozenList([1]), FrozenDict(a=1)):
        other = copied(value)
        assert other == value
        assert type(other) in (list, dict)


@pytest.fixture(params=["table", "partition"])
def storage(call: Call, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The storage descriptor of a table or of a partition, whose parts are in the cache."""
    name = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, name, [["1"]])
    yield get_table(call, name).sd if request.param == "table" else get_partitions(call, name)[0].sd
    for hash_, columns in call.database.caches.columns._values.items():
        assert descriptors.hash_of(descriptors.encode_columns(columns)) == hash_


@pytest.mark.parametrize(
    "change",
    [
        lambda sd: sd.cols.append(FieldSchema("c", "int", None)),
        lambda sd: sd.parameters.update(a="b"),
        lambda sd: sd.serdeInfo.parameters.update(a="b"),
        lambda sd: sd.bucketCols.append("a"),
        lambda sd: sd.sortCols.append(None),
        lambda sd: sd.skewedInfo.skewedColNames.append("a"),
        lambda sd: sd.skewedInfo.skewedColValueLocationMaps.update({("a",): "b"}),
    ],
)
def test_values_of_the_cache_can_not_be_changed(storage: Any, change: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match="copy it"):
        change(storage)


def test_a_descriptor_is_decoded_once(call: Call) -> None:
    name = make_table(call, "t", keys=[("p", "string")])
    add_partitions(call, name, [["1"], ["2"]])
    found = [*get_partitions(call, name), *get_partitions(call, name)]
    assert len({id(each.sd.serdeInfo) for each in found}) == len({id(each.sd.cols) for each in found}) == 1


@pytest.mark.parametrize("how", ["write", "autocommit"])
def test_work_for_the_end_is_done_once_and_just_before_the_commit(call: Call, how: str) -> None:
    done: list[object] = []

    def last(_: Session, items: Collection[str]) -> None:
        done.append(sorted(items))

    def work(session: Session) -> None:
        for item in ("b", "a", "b"):
            session.before_commit(last, item)
        done.append("work")

    getattr(call.database, how)(work)
    assert done == ["work", ["a", "b"]]


def test_nothing_is_invalidated_by_a_change_that_fails(call: Call) -> None:
    def work(session: Session) -> None:
        dependents.invalidate(session, "hive", "db", "t")
        raise MetaError("no")

    with pytest.raises(MetaError, match="no"):
        call.database.write(work)
    assert count(call, [schema.lock_queues]) == {"lock_queues": 0}
    call.database.write(lambda session: dependents.invalidate(session, "hive", "db", "t"))
    assert rows(call, schema.lock_queues, "name", "changes") == [("hive.db", 1)]
