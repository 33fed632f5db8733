import pytest

from metastore.errors import AlreadyExists, InvalidObject, MetaError, MissingArgument, NoSuchObject
from metastore.idl import Function, FunctionType, PrincipalType, ResourceType, ResourceUri
from metastore.service.call.context import Call
from metastore.service.catalog import functions
from tests.support.catalog.catalog import make_database

pytestmark = pytest.mark.on_one_database


def function(name: str | None, database: str = "default", **fields: object) -> Function:
    values: dict[str, object] = {
        "className": "org.example.F",
        "ownerType": PrincipalType.USER,
        "functionType": FunctionType.JAVA,
        "ownerName": "alice",
        "resourceUris": [ResourceUri(resourceType=ResourceType.JAR, uri="file:/x.jar")],
    }
    return Function(functionName=name, dbName=database, **{**values, **fields})


def names(call: Call, database: str, pattern: str | None) -> list[str]:
    return [found.functionName for found in functions.get_functions(call, database, pattern)]


def test_a_function_comes_back_as_it_was_made(call: Call) -> None:
    functions.create_function(call, function("Upper_2"))
    found = functions.get_function(call, "DEFAULT", "upper_2")
    assert found.createTime > 0
    found.createTime = None  # type: ignore[assignment]
    assert found == function("upper_2", catName="hive")
    assert [each.functionName for each in functions.get_all_functions(call)] == ["upper_2"]


def test_a_function_without_an_owner_belongs_to_its_maker(call: Call) -> None:
    functions.create_function(call, function("f", ownerName=None))
    assert functions.get_function(call, "default", "f").ownerName == call.caller


def test_functions_are_listed_by_pattern(call: Call) -> None:
    for name in ("find_b", "find_a", "hidden"):
        functions.create_function(call, function(name))
    assert names(call, "default", "*FIND*") == ["find_a", "find_b"]
    assert names(call, "default", "find_a|hid*") == ["find_a", "hidden"]
    assert names(call, "default", None) == ["find_a", "find_b", "hidden"]
    assert names(call, "nope", "*") == []


def test_a_second_function_of_a_name_is_refused(call: Call) -> None:
    functions.create_function(call, function("f"))
    with pytest.raises(AlreadyExists, match=r"hive\.default\.f"):
        functions.create_function(call, function("F"))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (function("a;b"), InvalidObject), (function(""), InvalidObject), (function("f", className=None), InvalidObject),
        (function("f", "nope"), NoSuchObject), (function("f", ownerType=None), MissingArgument), (None, MissingArgument),
        (function(None), MissingArgument),
    ],
)  # fmt: skip
def test_functions_that_can_not_be_stored_are_refused(call: Call, wrong: Function | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        functions.create_function(call, wrong)


def test_alter_changes_all_but_the_time(call: Call) -> None:
    make_database(call, "other")
    functions.create_function(call, function("f"))
    created = functions.get_function(call, "default", "f").createTime
    jars = [
        ResourceUri(resourceType=ResourceType.ARCHIVE, uri="hdfs:///b.zip"),
        ResourceUri(resourceType=ResourceType.JAR, uri="hdfs:///c.jar"),
    ]
    functions.alter_function(
        call,
        "default",
        "F",
        function("g", "other", className="New", resourceUris=jars, ownerName="eve", ownerType=PrincipalType.ROLE, createTime=1),
    )
    moved = functions.get_function(call, "other", "g")
    assert (moved.className, moved.createTime, moved.resourceUris) == ("New", created, jars)
    assert (moved.ownerName, moved.ownerType) == ("eve", PrincipalType.ROLE)
    functions.alter_function(call, "other", "g", function("g", "other", resourceUris=[]))
    assert functions.get_function(call, "other", "g").resourceUris == []
    assert names(call, "default", None) == []


def test_alter_does_not_take_the_name_of_another(call: Call) -> None:
    functions.create_function(call, function("f"))
    functions.create_function(call, function("g"))
    with pytest.raises(MetaError, match="already exists"):
        functions.alter_function(call, "default", "f", function("g"))
    with pytest.raises(MetaError, match="doesn't exist"):
        functions.alter_function(call, "default", "nope", function("h"))


def test_a_dropped_function_is_gone(call: Call) -> None:
    functions.create_function(call, function("f"))
    functions.drop_function(call, "Default", "F")
    with pytest.raises(NoSuchObject):
        functions.get_function(call, "default", "f")
    with pytest.raises(NoSuchObject):
        functions.drop_function(call, "default", "f")
