"""The schema registry: schemas of databases, their versions, serdes."""

from collections.abc import Callable
from threading import Thread

import pytest

from metastore.errors import AlreadyExists, InvalidOperation, MetaError, MetastoreError, MissingArgument, NoSuchObject
from metastore.idl import (
    FieldSchema,
    ISchema,
    ISchemaName,
    SchemaCompatibility,
    SchemaType,
    SchemaValidation,
    SchemaVersion,
    SchemaVersionDescriptor,
    SchemaVersionState,
    SerDeInfo,
    SerdeType,
)
from metastore.listeners.events import AddSchemaVersion, AlterSchema, AlterSchemaVersion, CreateSchema, DropSchema, DropSchemaVersion, Event
from metastore.service.call.context import Call, Metastore
from metastore.service.catalog import databases
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.service.engines import registry
from metastore.service.operations import notifications
from tests.support.catalog.catalog import call_of, make_database
from tests.support.catalog.recording import Before, Remembering, Within, listening
from tests.support.databases.statement_counts import StatementCounts

pytestmark = pytest.mark.on_one_database


def schema(name: str | None, database: str | None = "default", **fields: object) -> ISchema:
    values: dict[str, object] = {
        "schemaType": SchemaType.AVRO,
        "compatibility": SchemaCompatibility.FORWARD,
        "validationLevel": SchemaValidation.LATEST,
        "canEvolve": True,
        "catName": "hive",
    }
    return ISchema(name=name, dbName=database, **{**values, **fields})


def named(name: str | None = "s", database: str | None = "default", catalog: str | None = "hive") -> ISchemaName:
    return ISchemaName(catName=catalog, dbName=database, schemaName=name)


def column(name: str, type_: str = "int", namespace: str | None = None) -> FieldSchema:
    return FieldSchema(name=name, type=type_, comment=namespace)


def version(number: int | None, *columns: FieldSchema, of: ISchemaName | None = None, **fields: object) -> SchemaVersion:
    return SchemaVersion(schema=of or named(), version=number, createdAt=5, cols=list(columns) or [column("a")], **fields)


def described(number: int | None, of: ISchemaName | None = None) -> SchemaVersionDescriptor:
    return SchemaVersionDescriptor(schema=of or named(), version=number)


@pytest.fixture
def with_schema(call: Call) -> Call:
    registry.create_schema(call, schema("s"))
    return call


def test_a_schema_comes_back_as_it_was_made(call: Call) -> None:
    registry.create_schema(call, schema("My_Schema", "DEFAULT", schemaGroup="g", description="d"))
    assert registry.get_schema(call, named("MY_schema", "default", None)) == schema("my_schema", schemaGroup="g", description="d")
    registry.create_schema(call, schema("bare", canEvolve=False))
    assert registry.get_schema(call, named("bare")) == schema("bare", canEvolve=False)


def test_alter_keeps_name_and_type_and_absent_fields(call: Call) -> None:
    registry.create_schema(call, schema("s", schemaGroup="g", description="d"))
    new = schema("other", schemaType=SchemaType.HIVE, compatibility=SchemaCompatibility.BOTH, canEvolve=False, description="new")
    registry.alter_schema(call, named(), new)
    expected = schema("s", compatibility=SchemaCompatibility.BOTH, canEvolve=False, schemaGroup="g", description="new")
    assert registry.get_schema(call, named()) == expected


def test_schemas_of_databases_and_catalogs_are_kept_apart(call: Call) -> None:
    make_database(call, "other")
    for database in ("default", "other"):
        registry.create_schema(call, schema("s", database, description=database))
    assert registry.get_schema(call, named("s", "other")).description == "other"
    registry.drop_schema(call, named("s", "other"))
    assert registry.get_schema(call, named()).description == "default"


def test_versions_come_back_highest_first(with_schema: Call) -> None:
    call, serde = with_schema, SerDeInfo(name="x", serializationLib="lib", parameters={"k": "v"}, serdeType=SerdeType.SCHEMA_REGISTRY)
    full = version(
        2, column("B", "string", "ns"), column("a"), state=SchemaVersionState.REVIEWED, description="d", schemaText="{}", fingerprint="f",
        name="two", serDe=serde,
    )  # fmt: skip
    for each in (version(1), full, version(10)):
        registry.add_version(call, each)
    full.cols[0].name = "b"
    assert registry.get_version(call, described(2)) == full
    assert registry.get_latest_version(call, named()).version == 10
    assert [each.version for each in registry.get_versions(call, named())] == [10, 2, 1]
    assert registry.get_versions(call, named())[1] == full
    registry.drop_version(call, described(10))
    assert registry.get_latest_version(call, named()) == full


def test_versions_are_found_by_columns(with_schema: Call) -> None:
    call = with_schema
    make_database(call, "other")
    registry.create_schema(call, schema("t", "other"))
    registry.add_version(call, version(1, column("A", "int", "ns"), column("b", "string")))
    registry.add_version(call, version(2, column("a", "bigint", "ns")))
    registry.add_version(call, version(1, column("a", "int", "NS"), of=named("t", "other")))

    def found(*what: str | None) -> list[tuple[str, int]]:
        return [(each.schema.schemaName, each.version) for each in registry.find_versions(call, *what)]

    assert found("A", None, None) == [("s", 1), ("s", 2), ("t", 1)]
    assert found("a", None, "INT") == [("s", 1), ("t", 1)]
    assert found(None, "ns", None) == [("s", 1), ("s", 2)]
    assert found("b", "ns", None) == []
    assert found("a", "ns", "bigint") == [("s", 2)]
    with pytest.raises(MetaError, match="give one of them"):
        registry.find_versions(call, None, None, "int")
    registry.drop_version(call, described(2))
    assert found(None, "ns", None) == [("s", 1)]


def test_states_and_serdes_of_versions_change(with_schema: Call) -> None:
    call, serde = with_schema, SerDeInfo(name="Reader", serializationLib="lib", parameters={}, description="d")
    registry.add_serde(call, serde)
    assert registry.get_serde(call, "Reader") == serde
    registry.add_version(call, version(1, state=SchemaVersionState.INITIATED))
    registry.set_version_state(call, described(1), SchemaVersionState.ENABLED)
    registry.map_version_to_serde(call, described(1), "Reader")
    assert registry.get_version(call, described(1)) == version(1, state=SchemaVersionState.ENABLED, serDe=serde)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda call: registry.create_schema(call, schema("S")), AlreadyExists, r"hive\.default\.s"),
        (lambda call: registry.create_schema(call, schema("t", "nope")), NoSuchObject, r"hive\.nope"),
        (lambda call: registry.create_schema(call, schema("t", catName="nope")), NoSuchObject, r"nope\.default"),
        (lambda call: registry.create_schema(call, schema("t" * 257)), MetaError, "1 to 256"),
        (lambda call: registry.create_schema(call, schema(" ")), MetaError, "1 to 256"),
        (lambda call: registry.create_schema(call, schema(None)), MissingArgument, "names"),
        (lambda call: registry.create_schema(call, schema("t", None)), MissingArgument, "names"),
        (lambda call: registry.create_schema(call, None), MissingArgument, "null"),
        (lambda call: registry.get_schema(call, named("nope")), NoSuchObject, r"default\.nope"),
        (lambda call: registry.get_schema(call, None), MissingArgument, "null"),
        (lambda call: registry.alter_schema(call, named("nope"), schema("s")), NoSuchObject, r"default\.nope"),
        (lambda call: registry.alter_schema(call, named(), None), MissingArgument, "null"),
        (lambda call: registry.drop_schema(call, named("nope")), NoSuchObject, r"default\.nope"),
        (lambda call: registry.drop_schema(call, named()), InvalidOperation, "drop them first"),
        (lambda call: registry.add_version(call, version(1)), AlreadyExists, "version 1"),
        (lambda call: registry.add_version(call, version(1, of=named("nope"))), NoSuchObject, r"default\.nope"),
        (lambda call: registry.add_version(call, version(2, column(""))), MetaError, "name of each column"),
        (lambda call: registry.add_version(call, version(2, column("x" * 767))), MetaError, "name of each column"),
        (lambda call: registry.add_version(call, version(None)), MissingArgument, "number"),
        (lambda call: registry.add_version(call, None), MissingArgument, "null"),
        (lambda call: registry.get_version(call, described(7)), NoSuchObject, "version 7"),
        (lambda call: registry.get_version(call, described(1, named("s", "nope"))), NoSuchObject, "nope"),
        (lambda call: registry.get_version(call, None), MissingArgument, "null"),
        (lambda call: registry.get_latest_version(call, named("nope")), NoSuchObject, "nope"),
        (lambda call: registry.get_latest_version(call, named("empty")), NoSuchObject, "empty"),
        (lambda call: registry.get_versions(call, named("empty")), NoSuchObject, "empty"),
        (lambda call: registry.drop_version(call, described(7)), NoSuchObject, "version 7"),
        (lambda call: registry.set_version_state(call, described(7), 1), NoSuchObject, "version 7"),
        (lambda call: registry.set_version_state(call, described(1), None), MissingArgument, "state"),
        (lambda call: registry.map_version_to_serde(call, described(7), "known"), NoSuchObject, "version 7"),
        (lambda call: registry.map_version_to_serde(call, described(1), "nope"), NoSuchObject, "serde nope"),
        (lambda call: registry.add_serde(call, SerDeInfo(name="known")), AlreadyExists, "known"),
        (lambda call: registry.add_serde(call, SerDeInfo()), MissingArgument, "name"),
        (lambda call: registry.get_serde(call, "nope"), NoSuchObject, "nope"),
        (lambda call: registry.get_serde(call, None), MissingArgument, "null"),
    ],
)
def test_wrong_schemas_and_versions_are_refused(
    with_schema: Call, wrong: Callable[[Call], None], error: type[MetastoreError], text: str
) -> None:
    call = with_schema
    registry.create_schema(call, schema("empty"))
    registry.add_version(call, version(1))
    registry.add_serde(call, SerDeInfo(name="known"))
    with pytest.raises(error, match=text) as raised:
        wrong(call)
    assert type(raised.value) is error
    assert registry.get_versions(call, named()) == [version(1)]


def test_a_database_with_schemas_is_dropped_with_them_by_cascade_alone(call: Call) -> None:
    for _ in range(2):
        make_database(call, "doomed")
        registry.create_schema(call, schema("s", "doomed"))
        registry.add_version(call, version(1, of=named("s", "doomed")))
        with pytest.raises(InvalidOperation, match="One or more schemas exist"):
            databases.drop_database(call, "hive", "doomed", delete_data=True, cascade=False)
        databases.drop_database(call, "hive", "doomed", delete_data=True, cascade=True)
        assert registry.find_versions(call, "a", None, None) == []
        with pytest.raises(NoSuchObject):
            registry.get_schema(call, named("s", "doomed"))


def test_listeners_are_called_before_within_and_after(metastore: Metastore) -> None:
    seen: list[tuple[str, Event]] = []
    after = Remembering()
    before = Before(lambda event: seen.append(("before", event)))
    within = Within(lambda event, _: seen.append(("within", event)))
    call = call_of(listening(metastore, before, within, after))
    registry.create_schema(call, schema("s"))
    registry.alter_schema(call, named(), schema("s", canEvolve=False))
    registry.add_version(call, version(1))
    registry.set_version_state(call, described(1), SchemaVersionState.DELETED)
    registry.add_serde(call, SerDeInfo(name="x"))
    registry.map_version_to_serde(call, described(1), "x")
    registry.drop_version(call, described(1))
    registry.drop_schema(call, named())
    kinds = (CreateSchema, AlterSchema, AddSchemaVersion, AlterSchemaVersion, AlterSchemaVersion, DropSchemaVersion, DropSchema)
    assert [(when, type(event)) for when, event in seen] == [(when, kind) for kind in kinds for when in ("before", "within")]
    assert [(type(event), error) for event, error in after.seen] == [(kind, None) for kind in kinds]
    altered = [event for event, _ in after.seen if isinstance(event, AlterSchemaVersion)]
    assert [(each.before.state, each.after.state) for each in altered] == [(None, 8), (8, 8)]
    assert altered[1].after.serDe == SerDeInfo(name="x")


def test_the_notification_log_has_nothing_of_schemas_as_in_java(logged: Call) -> None:
    create_startup_objects(logged.metastore)
    before = notifications.current_id(logged)
    registry.create_schema(logged, schema("s"))
    assert notifications.current_id(logged) == before


def test_of_two_who_add_the_same_version_one_is_refused(with_schema: Call) -> None:
    outcomes: list[str] = []

    def add() -> None:
        try:
            registry.add_version(with_schema, version(1, *(column(f"c{number}") for number in range(50))))
            outcomes.append("added")
        except AlreadyExists:
            outcomes.append("refused")

    threads = [Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["added", "refused", "refused", "refused"]
    assert len(registry.get_version(with_schema, described(1)).cols) == 50


def test_statements(with_schema: Call, counts: StatementCounts) -> None:
    call = with_schema
    counts("create_ischema", lambda: registry.create_schema(call, schema("t")))
    counts("alter_ischema", lambda: registry.alter_schema(call, named("t"), schema("t", canEvolve=False)))
    counts("get_ischema", lambda: registry.get_schema(call, named("t")))
    counts("drop_ischema", lambda: registry.drop_schema(call, named("t")))
    columns = [column(f"c{number}") for number in range(50)]
    counts("add_schema_version", lambda: registry.add_version(call, version(1, *columns)))
    registry.add_version(call, version(2, *columns))
    counts("get_schema_version", lambda: registry.get_version(call, described(1)))
    counts("get_schema_latest_version", lambda: registry.get_latest_version(call, named()))
    counts("get_schema_all_versions", lambda: registry.get_versions(call, named()))
    counts("get_schemas_by_cols", lambda: registry.find_versions(call, "c1", None, None))
    counts("set_schema_version_state", lambda: registry.set_version_state(call, described(1), 1))
    counts("add_serde", lambda: registry.add_serde(call, SerDeInfo(name="x")))
    counts("map_schema_version_to_serde", lambda: registry.map_version_to_serde(call, described(1), "x"))
    counts("drop_schema_version", lambda: registry.drop_version(call, described(1)))
