"""Locations are parsed as Hadoop writes them, and written back unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import MetaError
from metastore.places import above, is_in, place_of
from metastore.warehouse.locations import as_root, is_absolute, is_below, join, parse, qualify, same_place


@pytest.mark.parametrize(
    "location",
    ["file:/x/y", "file:///x/y", "file://localhost/x/y", "s3a://b/x", "s3n://b/x", "s3://b/x", "S3A://B/x", "hdfs://nn:8020/x",
     "abfs://c@account.dfs.core.windows.net/x", "memory://m/x", "s3://b", "s3://b/a b%20c#d?e"],
)  # fmt: skip
def test_a_location_with_a_scheme_comes_back_unchanged(location: str) -> None:
    assert qualify(location) == location


@pytest.mark.parametrize(
    ("given_location", "stored"),
    [("/x/y", "file:/x/y"), ("/x/y/", "file:/x/y"), ("/", "file:/"), ("s3://b/x/", "s3://b/x"), ("//localhost/x", "file:/x")],
)
def test_a_path_gets_the_local_scheme_and_a_slash_at_the_end_goes(given_location: str, stored: str) -> None:
    assert qualify(given_location) == stored


@pytest.mark.parametrize(
    ("location", "base", "stored"),
    [
        ("/x", "s3a://b/wh", "s3a://b/x"),
        ("/x", "hdfs://nn:8020/", "hdfs://nn:8020/x"),
        ("//host/x", "hdfs://nn:8020/wh", "hdfs://host/x"),
        ("/x/", "memory://m/wh", "memory://m/x"),
        ("/x", "dbfs:/wh", "dbfs:/x"),
        ("/x", "file:///wh", "file:/x"),
        ("/x", "file://localhost/wh", "file:/x"),
        ("/x", "/wh", "file:/x"),
        ("file:/x", "s3a://b/wh", "file:/x"),
        ("//host/x", "file:/wh", "file://host/x"),
    ],
)
def test_a_path_belongs_to_the_file_system_of_the_directory_above_it(location: str, base: str, stored: str) -> None:
    assert qualify(location, base) == stored


@pytest.mark.parametrize(
    ("given_location", "root"),
    [("/x/y/", "file:/x/y"), ("file:///x//y", "file:/x/y"), ("file://localhost/x", "file:/x"), ("file://host/x", "file://host/x"),
     ("s3a://b/x/", "s3a://b/x"), ("s3://b/", "s3://b"), ("/", "file:/"),
     ("file:///", "file:/"), ("hdfs:///", "hdfs:///"), ("hdfs://nn:8020/x", "hdfs://nn:8020/x")],
)  # fmt: skip
def test_a_root_is_written_as_hadoop_prints_it(given_location: str, root: str) -> None:
    assert as_root(given_location) == root


@pytest.mark.parametrize(
    "other", ["file:/x/y", "file:///x/y", "file://localhost/x/y", "/x/y/", "file:///x//y", "file:/x/./y", "file:/x/y/."]
)
def test_spellings_of_a_local_place_are_equal(other: str) -> None:
    assert same_place("file:/x/y", other)


def test_s3_schemes_name_one_place_and_buckets_differ() -> None:
    assert same_place("s3a://b/x", "s3://b/x/")
    assert same_place("s3n://b/x", "s3://b/x")
    assert not same_place("s3://b/x", "s3://c/x")
    assert not same_place("s3://b/x", "s3://b/X")


def test_percent_and_question_mark_are_characters_of_a_name() -> None:
    assert parse("file:/x/a%2Fb?c#d").path == "/x/a%2Fb?c#d"
    assert not same_place("file:/x/%79", "file:/x/y")
    assert parse("file:/x/%2e%2e/y").path == "/x/%2e%2e/y"


@pytest.mark.parametrize("location", ["file:/wh/../etc", "/..", "s3://b/a/../../c", "file:/wh/x/.."])
def test_a_location_that_climbs_out_is_refused(location: str) -> None:
    with pytest.raises(MetaError, match=r"climbs out of its directory with '\.\.'"):
        parse(location)


@pytest.mark.parametrize("location", ["", "x/y", "file:x", "../x", "warehouse"])
def test_a_location_that_is_not_absolute_is_refused(location: str) -> None:
    with pytest.raises(MetaError, match="is not absolute: give scheme://authority/path or /path"):
        parse(location)
    assert not is_absolute(location)


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(MetaError, match="holds a NUL character"):
        parse("file:/x\0y")


def test_below_means_whole_components() -> None:
    assert is_below("file:///wh/db", "file:/wh")
    assert is_below("/wh", "file:/wh/")
    assert is_below("file:/a", "file:/")
    assert not is_below("file:/wh2", "file:/wh")
    assert not is_below("s3://b/wh/x", "file:/wh")


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1).filter(lambda name: name not in (".", "..")))
def test_a_joined_name_lies_directly_below(name: str) -> None:
    joined = join("file:/wh/", name)
    assert is_below(joined, "file:/wh")
    assert parse(joined).path == f"/wh/{name}"


@pytest.mark.parametrize(
    ("spellings", "place"),
    [
        (["/x/y", "file:/x/y", "file:///x//y/", "file://localhost/x/y", "file:/x/./y"], "file:///x/y"),
        (["s3://b/x", "s3a://b/x/", "s3n://b//x", "S3A://b/x"], "s3://b/x"),
        (["hdfs://nn/x", "hdfs://NN:8020/x"], "hdfs://nn/x"),
        (["/", "file:/", "file:///"], "file://"),
        (["s3a://b", "s3a://b/"], "s3://b"),
        (["", None, "x", "/x/../y", "/x\0"], None),
    ],
)
def test_all_spellings_of_a_place_have_one_text(spellings: list[str | None], place: str | None) -> None:
    assert {place_of(each) for each in spellings} == {place}


def test_a_place_is_held_by_the_objects_above_it() -> None:
    assert list(above("s3://b/x/y")) == ["s3://b/x", "s3://b"]
    assert list(above("file:///x")) == ["file://"]
    assert list(above("s3://b")) == []
    for outer in (*above("s3://b/x/y"), "s3://b/x/y"):
        assert is_in("s3://b/x/y", outer)
    for other in ("s3://b/x/", "s3://b/x/y1", "s3://b/x/y/z", "s3://c"):
        assert not is_in("s3://b/x/y", other)
