"""Table types: every combination of docs/table-types.md, and the tables that the rules refuse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from metastore.errors import MetaError
from metastore.idl import Order, SerDeInfo, StorageDescriptor, Table
from metastore.rules.catalog import capabilities as caps
from metastore.rules.catalog import table_types as rules
from metastore.rules.catalog.transactional import ORC_INPUT, ORC_OUTPUT, ORC_SERDE

ROOTS = rules.Roots(
    managed="file:/w/managed",
    external="file:/w/external",
    database="file:/w/external/db.db",
    database_name="db",
)
READER = ["HIVEFULLACIDREAD", "HIVEMANAGEDINSERTREAD"]
CLIENTS: dict[str, list[str] | None] = {
    "plain": None,
    "reader": READER,
    "insert-only writer": [*READER, "HIVEMANAGEDINSERTWRITE"],
    "full ACID writer": [*READER, "HIVEMANAGEDINSERTWRITE", "HIVEFULLACIDWRITE"],
}
KEYWORDS: dict[str, tuple[str, dict[str, str]]] = {
    "managed": ("MANAGED_TABLE", {}),
    "external": ("EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}),
    "external type": ("EXTERNAL_TABLE", {}),
    "external parameter": ("MANAGED_TABLE", {"EXTERNAL": "true"}),
    "view": ("VIRTUAL_VIEW", {}),
    "materialized view": ("MATERIALIZED_VIEW", {}),
}
PROPERTIES: dict[str, dict[str, str]] = {
    "none": {},
    "false": {"transactional": "false"},
    "true": {"transactional": "true"},
    "insert-only": {"transactional": "true", "transactional_properties": "insert_only"},
}
TEXT = ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat")
FORMATS: dict[str, tuple[str | None, str | None]] = {
    "ORC": (ORC_INPUT, ORC_OUTPUT),
    "other": TEXT,
    "none": (None, None),
}
LOCATIONS: dict[str, str | None] = {
    "none": None,
    "managed": "file:///w/managed/x",
    "external": "/w/external/x",
    "elsewhere": "s3a://bucket/x",
}
DOMAINS: tuple[tuple[str, ...], ...] = tuple(tuple(domain) for domain in (CLIENTS, KEYWORDS, PROPERTIES, FORMATS, LOCATIONS))
KINDS = {
    "": {},
    "full": {"transactional": "true", "transactional_properties": "default"},
    "insert-only": {"transactional": "true", "transactional_properties": "insert_only"},
    "translated": {"EXTERNAL": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE", "external.table.purge": "TRUE"},
}
REASONS = {
    "external": "because it's an external table",
    "view": "because it's a view",
    "format": "must be stored using an ACID compliant format",
    "capability": r"Client Spark 3\.5 lacks the capability HIVE\w+WRITE, which table db\.t needs",
    "location": r"location.*expected below file:/w/(managed|external)",
}


class Row(NamedTuple):
    mode: str
    cells: tuple[str, ...]
    stored: str
    root: str


def documented() -> Iterator[Row]:
    mode = ""
    for line in (Path(__file__).parents[3] / "docs" / "table-types.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            mode = line[3:].strip()
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if mode in {"legacy", "strict"} and line.startswith("|") and cells[0] not in {"client", "---"}:
            yield Row(mode, tuple(cells[:5]), cells[5], cells[6])


def combinations(row: Row) -> Iterator[tuple[str, ...]]:
    choices = []
    for cell, domain in zip(row.cells, DOMAINS, strict=True):
        listed = list(domain) if cell == "any" else [value.strip() for value in cell.split(",")]
        assert set(listed) <= set(domain), f"unknown value in {row}"
        choices.append(listed)
    yield from itertools.product(*choices)


def table(
    kind: str = "MANAGED_TABLE",
    parameters: dict[str, str] | None = None,
    formats: tuple[str | None, str | None] = TEXT,
    location: str | None = None,
    **fields: object,
) -> Table:
    sd = StorageDescriptor(cols=[], inputFormat=formats[0], outputFormat=formats[1], location=location, serdeInfo=SerDeInfo())
    return Table(tableName="t", dbName="db", tableType=kind, parameters=parameters, sd=sd, **fields)  # type: ignore[arg-type] # the stub lists every field


def asked(combination: tuple[str, ...]) -> tuple[Table, list[str] | None]:
    client, keyword, acid, format_, location = combination
    kind, parameters = KEYWORDS[keyword]
    wanted = {**parameters, **PROPERTIES[acid], "owner": "me"}
    return table(kind, wanted, FORMATS[format_], LOCATIONS[location]), CLIENTS[client]


def translate(asked_for: Table, mode: str, capabilities: list[str] | None = None, **options: object) -> rules.Translation:
    settings = {"roots": ROOTS, "client_name": "Spark 3.5", **options}
    return rules.translate(asked_for, mode=mode, capabilities=capabilities, **settings)  # type: ignore[arg-type] # modes come from the document


@pytest.mark.parametrize("row", list(documented()), ids=lambda row: f"{row.mode}: {' | '.join(row.cells)}")
def test_every_documented_combination_is_stored_as_documented(row: Row) -> None:
    for combination in combinations(row):
        wanted, capabilities = asked(combination)
        if row.stored.startswith("error: "):
            with pytest.raises(MetaError, match=REASONS[row.stored.removeprefix("error: ")]):
                translate(wanted, row.mode, capabilities)
            continue
        found = translate(wanted, row.mode, capabilities)
        kind, _, acid = row.stored.partition(" ")
        assert found.table.tableType == kind, combination
        assert found.root == row.root, combination
        keyword = {"EXTERNAL": found.table.parameters.get("EXTERNAL")} if row.root == "external" else {}
        assert found.table.parameters == {"owner": "me", **keyword, **KINDS[acid]}, combination
        assert kind != "EXTERNAL_TABLE" or rules.is_external(found.table)
        assert found.table.sd.location == LOCATIONS[combination[4]]


@pytest.mark.parametrize("mode", ["legacy", "strict"])
def test_every_combination_is_documented_exactly_once(mode: str) -> None:
    found = [combination for row in documented() if row.mode == mode for combination in combinations(row)]
    assert len(found) == len(set(found))
    assert set(found) == set(itertools.product(*DOMAINS))


def test_the_requested_table_is_not_changed() -> None:
    wanted = table(parameters={"a": "b"})
    before = repr(wanted)
    translate(wanted, "strict")
    translate(wanted, "strict", CLIENTS["full ACID writer"])
    assert repr(wanted) == before


def test_a_full_acid_table_without_a_format_gets_orc() -> None:
    found = translate(table(formats=(None, None)), "strict", CLIENTS["full ACID writer"]).table.sd
    assert (found.inputFormat, found.outputFormat, found.serdeInfo.serializationLib) == (
        ORC_INPUT,
        ORC_OUTPUT,
        ORC_SERDE,
    )


def test_sorted_tables_are_never_full_acid() -> None:
    writer = CLIENTS["full ACID writer"]
    wanted = table(formats=FORMATS["ORC"])
    wanted.sd.sortCols = [Order(col="a", order=1)]
    assert rules.is_insert_only(translate(wanted, "strict", writer).table)
    assert translate(wanted, "strict", ["HIVEFULLACIDWRITE"]).table.tableType == "EXTERNAL_TABLE"
    wanted.parameters = {"transactional": "true"}
    for mode in ("legacy", "strict"):
        with pytest.raises(MetaError, match=r"db\.t cannot support full ACID functionality since it is sorted"):
            translate(wanted, mode, writer)


def test_insert_only_can_be_asked_for_in_three_ways() -> None:
    writer = CLIENTS["insert-only writer"]
    for parameters in (
        {"transactional": "true", "TRANSACTIONAL_PROPERTIES": "Insert_Only"},
        {"transactional_properties": "insert_only"},
        {"insert_only": "true"},
    ):
        found = translate(table(parameters=parameters), "strict", writer).table
        assert rules.is_insert_only(found)
        assert not rules.is_full_acid(found)


def test_other_catalogs_are_not_translated() -> None:
    found = translate(table(catName="spark"), "strict")
    assert (found.table.tableType, found.root) == ("MANAGED_TABLE", "managed")


def test_managed_orc_tables_are_made_acid_by_the_setting() -> None:
    assert rules.is_full_acid(translate(table(formats=FORMATS["ORC"]), "legacy", create_as_acid=True).table)
    assert not rules.is_transactional(translate(table(), "legacy", create_as_acid=True).table)
    stated = table(formats=FORMATS["ORC"], parameters={"transactional": "false"})
    assert not rules.is_transactional(translate(stated, "legacy", create_as_acid=True).table)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": None}, "MANAGED_TABLE"),
        ({"kind": None, "parameters": {"EXTERNAL": "TRUE"}}, "EXTERNAL_TABLE"),
        ({"kind": None, "viewOriginalText": "select 1"}, "VIRTUAL_VIEW"),
        ({"kind": "INDEX_TABLE"}, "INDEX_TABLE"),
        ({"kind": "MANAGED_TABLE", "parameters": {"EXTERNAL": "tRuE"}}, "EXTERNAL_TABLE"),
    ],
)
def test_a_missing_type_is_deduced(fields: dict[str, object], expected: str) -> None:
    assert translate(table(**fields), "legacy").table.tableType == expected  # type: ignore[arg-type] # the fields vary


@pytest.mark.parametrize("value", ["yes", "", "1"])
def test_transactional_is_true_or_false(value: str) -> None:
    for mode in ("legacy", "strict"):
        with pytest.raises(MetaError, match=r"may only have value 'true': db\.t"):
            translate(table(parameters={"transactional": value}), mode)


def test_unknown_transactional_properties_are_refused() -> None:
    wanted = table(parameters={"transactional": "true", "transactional_properties": "some"}, formats=FORMATS["ORC"])
    with pytest.raises(MetaError, match="unknown value some"):
        translate(wanted, "legacy")


FULL = {"transactional": "true", "transactional_properties": "default"}
INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}


def alter(old: dict[str, str], new: dict[str, str], kind: str = "MANAGED_TABLE", format_: str = "ORC") -> Table:
    before = table(parameters=old, formats=FORMATS[format_], location="/w/managed/t")
    after = table(kind, new, FORMATS[format_], "/w/managed/t")
    return rules.translate_alter(before, after, mode="legacy", roots=ROOTS)


def test_a_table_may_become_transactional_but_not_cease_to_be() -> None:
    assert alter({}, {"Transactional": "TRUE"}).parameters == FULL
    assert alter(FULL, {**FULL, "a": "b"}).parameters == {**FULL, "a": "b"}
    assert alter(INSERT_ONLY, FULL).parameters == FULL
    for taken in ({}, {"transactional": "false"}, {"a": "b"}):
        with pytest.raises(MetaError, match="cannot be unset"):
            alter(FULL, taken)


@pytest.mark.parametrize("mode", ["legacy", "strict"])
@pytest.mark.parametrize("parameters", [{}, {"transactional": "false"}])
def test_external_tables_by_default_are_made_where_they_are_wanted(mode: str, parameters: dict[str, str]) -> None:
    """That includes clients that can write transactional tables, and servers on which managed ORC tables become transactional."""
    wanted = table(parameters=parameters, formats=FORMATS["ORC"])
    found = translate(wanted, mode, CLIENTS["full ACID writer"], as_external=True, create_as_acid=True)
    assert (found.table.tableType, found.root) == ("EXTERNAL_TABLE", "external")
    assert found.table.parameters == {"EXTERNAL": "TRUE", "external.table.purge": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE"}


@pytest.mark.parametrize("mode", ["legacy", "strict"])
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("MANAGED_TABLE", FULL),
        ("MANAGED_TABLE", INSERT_ONLY),
        ("MANAGED_TABLE", {"transactional": "true"}),
        ("EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}),
        ("VIRTUAL_VIEW", {}),
    ],
)
def test_a_requested_type_comes_before_the_wish_for_external_tables(mode: str, kind: str, parameters: dict[str, str]) -> None:
    wanted = table(kind, parameters, FORMATS["ORC"])
    able = CLIENTS["full ACID writer"]
    assert translate(wanted, mode, able, as_external=True) == translate(wanted, mode, able)


def test_impossible_changes_of_a_table_are_refused() -> None:
    with pytest.raises(MetaError, match="cannot be altered after the table is created"):
        alter(FULL, INSERT_ONLY)
    with pytest.raises(MetaError, match="ACID compliant format"):
        alter({}, FULL, format_="other")
    with pytest.raises(MetaError, match="cannot be converted to external table"):
        alter(FULL, {**FULL, "EXTERNAL": "TRUE"})
    with pytest.raises(MetaError, match="because it's an external table"):
        alter({}, {**FULL, "EXTERNAL": "TRUE"}, "EXTERNAL_TABLE")


def test_an_altered_location_is_checked_in_strict_mode_only() -> None:
    before = table(parameters=FULL, formats=FORMATS["ORC"], location="/w/managed/t")
    after = table(parameters=FULL, formats=FORMATS["ORC"], location="/elsewhere/t")
    assert rules.translate_alter(before, after, mode="legacy", roots=ROOTS).sd.location == "/elsewhere/t"
    with pytest.raises(MetaError, match="expected below file:/w/managed"):
        rules.translate_alter(before, after, mode="strict", roots=ROOTS)
    assert rules.translate_alter(after, after, mode="strict", roots=ROOTS).sd.location == "/elsewhere/t"


@pytest.mark.parametrize(
    ("location", "root", "expected"),
    [
        ("/w/managed", "file:/w/managed", True),
        ("file:///w/managed/x/", "/w/managed/", True),
        ("/w/managed2", "/w/managed", False),
        ("/w/managed/../x", "/w/managed", False),
        ("/w/x/../managed/y", "/w/managed", True),
        ("s3a://b/w/x", "s3://b/w", True),
        ("s3a://other/w/x", "s3://b/w", False),
        ("hdfs://host/w", "file:/w", False),
        ("/anything", "/", True),
    ],
)
def test_places_are_compared_by_path_and_not_by_spelling(location: str, root: str, expected: bool) -> None:
    assert rules.is_below(location, root) is expected


def test_an_external_root_inside_the_managed_one_is_no_place_for_managed_tables() -> None:
    roots = rules.Roots("/w", "/w/ext", "/w/ext/db.db", None, "db")
    with pytest.raises(MetaError, match="expected below /w"):
        rules.validate_location(table(location="/w/ext/t"), roots)
    rules.validate_location(table(location="/w/t"), roots)
    rules.validate_location(table("EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}, location="/w/ext/t"), roots)


def test_a_databases_managed_location_is_a_place_for_managed_tables() -> None:
    roots = rules.Roots("/w/managed", "/w/ext", "/w/ext/db.db", "/own", "db")
    rules.validate_location(table(location="/own/t"), roots)
    assert rules.default_directory("managed", roots) == "/own"


@pytest.mark.parametrize(
    ("root", "database", "external", "expected"),
    [
        ("none", "/w/db.db", None, None),
        ("managed", "/w/db.db", None, "/w/db.db"),
        ("external", "/w/db.db", None, "/w/db.db"),
        ("managed", "/own", None, "/own"),
        ("managed", "/w/db.db", "/ext", "/w/db.db"),
        ("managed", "/ext/db.db", "/ext", "/w/db.db"),
        ("external", "/ext/db.db", "/ext", "/ext/db.db"),
        ("external", "/own", "/ext", "/own"),
        ("external", "/w/db.db", "/ext", "/ext/db.db"),
    ],
)
def test_default_directories_follow_the_root(root: rules.Root, database: str, external: str | None, expected: str | None) -> None:
    assert rules.default_directory(root, rules.Roots("/w", external, database, None, "db")) == expected


@pytest.mark.parametrize("database", ["/ext/db.db", "/own", "/w/db.db"])
def test_a_database_that_keeps_its_own_location_has_managed_tables_there(database: str) -> None:
    roots = rules.Roots("/w", "/ext", database, None, "db", keeps_own=True)
    assert rules.default_directory("managed", roots) == database


def test_data_of_external_tables_goes_only_if_they_say_so() -> None:
    assert rules.purges_data(table())
    assert not rules.purges_data(table(parameters={"EXTERNAL": "TRUE"}))
    assert rules.purges_data(table(parameters={"EXTERNAL": "TRUE", "external.table.purge": "True"}))
    assert not rules.purges_data(table("VIRTUAL_VIEW"))


def test_directories_of_managed_and_translated_tables_move_with_their_names() -> None:
    assert rules.moves_on_rename(table())
    assert not rules.moves_on_rename(table("EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}))
    assert rules.moves_on_rename(table("EXTERNAL_TABLE", {"EXTERNAL": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE"}))
    assert not rules.moves_on_rename(table("VIRTUAL_VIEW"))


@pytest.mark.parametrize(
    ("transaction", "parameters", "location", "place"),
    [
        (5, {"soft_delete": "true"}, "file:/w/t", "file:/w/t.v0000005"),
        (12345678, {"soft_delete": "TRUE"}, "file:/w/t/", "file:/w/t.v12345678"),
        (5, {"soft_delete": "true"}, "file:/w/t.v0000004", "file:/w/t.v0000004"),
        (5, {"soft_delete": "true"}, "file:/w.v1/t", "file:/w.v1/t.v0000005"),
        (5, {"soft_delete": "false"}, "file:/w/t", "file:/w/t"),
        (5, {}, "file:/w/t", "file:/w/t"),
        (0, {"soft_delete": "true"}, "file:/w/t", "file:/w/t"),
        (None, {"soft_delete": "true"}, "file:/w/t", "file:/w/t"),
    ],
)
def test_a_table_that_is_dropped_without_its_data_has_a_place_of_its_own(
    transaction: int | None, parameters: dict[str, str], location: str, place: str
) -> None:
    new = table(parameters=parameters)
    new.txnId = transaction
    assert rules.place_of_new(new, location) == place
    new.tableType = "VIRTUAL_VIEW"
    assert rules.place_of_new(new, location) == location


def test_insert_only_tables_are_kept_from_clients_that_do_not_know_them() -> None:
    wanted = table(parameters=INSERT_ONLY)
    with pytest.raises(MetaError, match=r"^Your client does not appear to support insert-only tables.*") as caught:
        rules.check_capabilities(wanted, None, "Spark 3.5")
    for word in ("Spark 3.5", "INSERT_ONLY_TABLES", "db.t"):
        assert word in caught.value.message
    rules.check_capabilities(wanted, ["INSERT_ONLY_TABLES"], "Trino")
    rules.check_capabilities(wanted, ["HIVEMANAGEDINSERTREAD"], "Hive")
    rules.check_capabilities(table(parameters=FULL), None, "Spark 3.5")
    rules.check_capabilities(table(), [], "Spark 3.5")


@pytest.mark.parametrize(
    ("wanted", "capabilities", "expected"),
    [
        (table(), [], (8, (), ())),
        (table(parameters=FULL), ["HIVEFULLACIDWRITE", "HIVEFULLACIDREAD"], (8, (), ())),
        (table(parameters=FULL), ["CONNECTORREAD"], (2, (), "HIVEFULLACIDWRITE")),
        (table(parameters=FULL), [], (1, "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE")),
        (table(parameters=INSERT_ONLY), ["HIVEMANAGEDINSERTREAD"], (2, (), "HIVEMANAGEDINSERTWRITE")),
        (table(parameters={"EXTERNAL": "TRUE"}), ["EXTREAD"], (2, (), "EXTWRITE")),
        (table(parameters={"EXTERNAL": "TRUE"}), ["EXTREAD", "EXTWRITE"], (8, (), ())),
        (table("VIRTUAL_VIEW"), ["HIVESQL"], (2, (), ())),
        (table("VIRTUAL_VIEW"), [], (1, "HIVESQL", ())),
        (table(parameters=INSERT_ONLY), ["HIVEMANAGEDINSERTWRITE"], (8, (), ())),
        (table(parameters=FULL), ["CONNECTORWRITE"], (8, (), ())),
        (table(parameters={"EXTERNAL": "TRUE"}), ["EXTWRITE"], (1, "EXTREAD", ())),
        (table("MATERIALIZED_VIEW"), ["HIVEMQT", "HIVEFULLACIDREAD"], (2, (), ())),
        (table("MATERIALIZED_VIEW"), ["HIVEMQT", "CONNECTORREAD"], (2, (), ())),
        (table("MATERIALIZED_VIEW"), ["HIVEMQT"], (1, "CONNECTORREAD", ())),
        (table("MATERIALIZED_VIEW"), ["HIVEFULLACIDREAD", "CONNECTORREAD"], (1, "HIVEMQT", ())),
        (table(parameters={"OBJCAPABILITIES": "aread, bwrite"}), ["AREAD"], (2, (), "BWRITE")),
    ],
)
def test_access_follows_from_a_clients_capabilities(wanted: Table, capabilities: list[str], expected: tuple[int, object, object]) -> None:
    found = caps.access(wanted, capabilities)
    assert found.type == expected[0]
    for missing, name in zip((found.missing_read, found.missing_write), expected[1:], strict=True):
        assert name in missing if name else missing == ()
