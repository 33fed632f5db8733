"""Comparisons find every change of every kind, name it, and use little memory. Selections and rewritten locations apply to records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metastore.errors import InvalidInput, InvalidOperation
from metastore.transfer import comparing
from metastore.transfer.comparing import compare, in_words
from metastore.transfer.dumps import DumpReader, DumpWriter
from metastore.transfer.records import DEFINITIONS, KINDS, Key, Record, content_hash
from metastore.transfer.rewriting import Rewritten
from metastore.transfer.selection import EVERYTHING, Selection, selection


def changed(source: DumpReader, path: Path, records: Iterator[Record]) -> DumpReader:
    DumpWriter(path).write(records)
    return DumpReader(path)


def test_one_record_less_is_found_in_every_kind(dumped: DumpReader, tmp_path: Path) -> None:
    kinds = [kind for kind in dumped.check() if kind not in DEFINITIONS]
    for kind in kinds:
        gone = next(record for record in dumped.records(EVERYTHING) if record.kind == kind)
        other = changed(dumped, tmp_path / kind, (record for record in dumped.records(EVERYTHING) if record != gone))
        found = compare(dumped, other, EVERYTHING)
        assert [each.words for each in found.differences] == [f"only in {dumped.name}"]
        assert found.differences[0].record.startswith(kind)
        assert found.counts[kind][0] == found.counts[kind][1] + 1
        assert [each.words for each in compare(other, dumped, EVERYTHING).differences] == [f"only in {dumped.name}"]


def test_one_other_field_is_found_in_every_kind(dumped: DumpReader, tmp_path: Path) -> None:
    seen: set[tuple[str, str]] = set()
    for number, record in enumerate(dumped.records(EVERYTHING)):
        for field in sorted(record.body):
            if (record.kind, field) in seen or record.kind in DEFINITIONS:
                continue
            seen.add((record.kind, field))
            other = changed(
                dumped,
                tmp_path / f"{number}-{field}",
                (each._replace(body={**each.body, field: "another"}) if each == record else each for each in dumped.records(EVERYTHING)),
            )
            (found,) = compare(dumped, other, EVERYTHING).differences
            assert found.words == f"{field} is {record.body[field]!r} in the first, 'another' in the second"
    assert len(seen) > 80


def roles(path: Path, numbers: range) -> DumpReader:
    return changed(DumpReader(path), path, (Record("role", (f"r{number}",), {"n": number}) for number in numbers))


def test_many_differences_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = roles(tmp_path / "a", range(2000)), roles(tmp_path / "b", range(1000, 3000))
    found = compare(one, other, EVERYTHING, most=10)
    assert (len(found.differences), found.is_cut, found.equal) == (10, True, False)
    assert found.counts == {"role": (2000, 2000)}
    monkeypatch.setattr(comparing, "HELD", 100)
    few = compare(one, other, EVERYTHING, most=10_000)
    assert 50 < len(few.differences) <= 200
    assert few.is_cut


def test_the_same_record_twice_is_a_difference(tmp_path: Path) -> None:
    record = Record("location_grant", (1, "ann", "s3a://b"), {})
    one, other = (changed(DumpReader(tmp_path), tmp_path / str(times), iter([record] * times)) for times in (1, 2))
    (found,) = compare(one, other, EVERYTHING).differences
    assert found.words == f"1 times in {one.name}, 2 times in {other.name}"


def test_words_for_nested_values() -> None:
    one: dict[str, Any] = {"a": {"b": [1, {"c": 2}]}, "d": 1, "same": []}
    other: dict[str, Any] = {"a": {"b": [1, {"c": 3}]}, "e": 1, "same": []}
    assert list(in_words(one, other)) == [
        "a.b[1].c is 2 in the first, 3 in the second",
        "d is only in the first: 1",
        "e is only in the second: 1",
    ]


@pytest.mark.parametrize(
    ("include", "exclude", "wanted"),
    [
        ((), (), {"hive.sales.orders", "hive.other.t", "lake.sales.t"}),
        (("sales",), (), {"hive.sales.orders", "lake.sales.t"}),
        (("hive.sales.*",), (), {"hive.sales.orders"}),
        (("*.t",), (), {"hive.other.t", "lake.sales.t"}),
        ((), ("sales",), {"hive.other.t"}),
        (("SALES.O*", "other"), ("other.t",), {"hive.sales.orders"}),
    ],
)
def test_patterns(include: tuple[str, ...], exclude: tuple[str, ...], wanted: set[str]) -> None:
    chosen = selection(include, exclude)
    names = [("hive", "sales", "orders"), ("hive", "other", "t"), ("lake", "sales", "t")]
    assert {".".join(each) for each in names if chosen.wants_key("table", each)} == wanted
    for each in names:
        if chosen.wants_table(*each):
            assert chosen.wants_database(*each[:2])
            assert chosen.wants_catalog(each[0])
            assert chosen.wants_key("partition", (*each, "p=1"))
    assert chosen.wants("role") is not bool(include)


def test_objects_outside_of_tables_come_with_their_database() -> None:
    chosen = selection(("sales.orders",))
    assert chosen.wants_key("function", ("hive", "sales", "f"))
    assert not chosen.wants_key("function", ("hive", "other", "f"))
    assert not chosen.wants_key("privilege", (1, *[None] * 5))
    assert chosen._replace(done={("hive", "sales", "orders")}).wants_key("constraint", ("hive", "sales", "orders", "c"))
    assert not Selection(done={("hive", "sales", "orders")}).wants_key("partition", ("hive", "sales", "orders", "p=1"))


def test_locations_are_rewritten(dumped: DumpReader, filled: str) -> None:
    root = next(record for record in dumped.records(EVERYTHING) if record.key == ("hive", "sales")).body["location"].removesuffix("/sales")
    moved = list(Rewritten(dumped, [f"{root}=s3a://new/place", "file:/nowhere=s3a://x"]).records(EVERYTHING))
    kept = list(dumped.records(EVERYTHING))
    assert [record.kind for record in moved] == [record.kind for record in kept]
    for record, old in zip(moved, kept, strict=True):
        assert root not in repr(record)
        if record.kind in ("table", "partition") and old.body["location"] is not None:
            assert record.body["location"] == old.body["location"].replace(root, "s3a://new/place")
    back = list(Rewritten(_Listed(moved), [f"s3a://new/place={root}"]).records(EVERYTHING))
    assert back == kept


class _Listed:
    """A reader of the records in a list."""

    name = "listed"
    skipped: list[str] = []  # noqa: RUF012
    kinds = frozenset(KINDS)
    seen = None

    def __init__(self, records: list[Record]) -> None:
        self.listed = records

    def close(self) -> None: ...

    def tables(self, selection: Selection) -> set[Key]:
        return {record.key for record in self.records(selection) if record.kind == "table"}

    def changes(self, after: int) -> None: ...

    def partitions(self) -> int:
        return 0

    def records(self, _: Selection) -> Iterator[Record]:
        return iter(self.listed)


def test_beginnings_of_names_are_no_places() -> None:
    one = Rewritten(_Listed([]), ["s3a://b/a=s3a://c", "s3a://b/a/b=s3a://d"])
    assert [one.of(each) for each in ("s3a://b/a", "s3a://b/ab", "s3a://b/a/x", "s3a://b/a/b/x")] == [
        "s3a://c", "s3a://b/ab", "s3a://c/x", "s3a://d/x",
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match="write FROM=TO"):
        Rewritten(_Listed([]), ["s3a://b"])


def test_partitions_follow_their_rewritten_storage() -> None:
    def storage(path: str) -> dict[str, Any]:
        return {"serde": ["s", "lib", {"path": path, "k": path}, None, None, None, None], "skew": [["a"], [["x"]], [[["x"], path]]]}

    old, new = storage("s3a://b/t"), storage("s3a://c/t")
    new["serde"][2]["k"] = "s3a://b/t"
    key = ("hive", "db", "t")
    given = [
        Record("descriptor", (*key, content_hash(old)), {"content": old}),
        Record("partition", (*key, "p=1"), {"location": "s3a://b/t/p=1", "storage": content_hash(old), "columns": None, "parameters": {}}),
    ]
    described, partition = Rewritten(_Listed(given), ["s3a://b=s3a://c"]).records(EVERYTHING)
    assert described.body["content"] == new
    assert described.key[3] == partition.body["storage"] == content_hash(new)


def test_a_table_of_iceberg_is_not_rewritten() -> None:
    body = {"location": "s3a://b/t", "parameters": {"metadata_location": "s3a://b/t/metadata/1.json"}, "storage": None}
    given = _Listed([Record("table", ("hive", "db", "t"), body)])
    with pytest.raises(InvalidOperation, match=r"table hive\.db\.t: it is an Iceberg table"):
        list(Rewritten(given, ["s3a://b=s3a://c"]).records(EVERYTHING))
    assert list(Rewritten(given, ["s3a://other=s3a://c"]).records(EVERYTHING)) == given.listed
