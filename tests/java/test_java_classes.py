"""Structs of the Java client classes of three releases: we read and write them, and the classes read back the same."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.java.roundtrip import JavaRun, our_class

pytestmark = pytest.mark.slow

API = "org.apache.hadoop.hive.metastore.api"
ARTIFACTS = {
    "2.3.10": [
        "org.apache.hive:hive-metastore:2.3.10",
        "org.apache.hive:hive-common:2.3.10",
        "org.apache.thrift:libthrift:0.9.3",
        "com.google.guava:guava:14.0.1",
        "commons-lang:commons-lang:2.6",
        "org.apache.commons:commons-lang3:3.1",
    ],
    "3.1.3": ["org.apache.hive:hive-standalone-metastore:3.1.3", "org.apache.thrift:libthrift:0.9.3"],
    "4.0.1": ["org.apache.hive:hive-standalone-metastore-common:4.0.1", "org.apache.thrift:libthrift:0.16.0"],
}
LOGGING = "org.slf4j:slf4j-api:1.7.36"
CLASSES = {"2.3.10": 448, "3.1.3": 643, "4.0.1": 888}
"""The number of structs, unions, exceptions, arguments and results of each release."""

CONFLICTS_2_3 = {"Table", "AddDynamicPartitions", "InsertEventRequestData", "GetOpenTxnsResponse"}
"""Structs of 2.3.10 whose fields have another type now (see docs/interface.md)."""


def holds_conflict(cls: Any, outer: frozenset[Any] = frozenset()) -> bool:
    """Return whether a struct is one of `CONFLICTS_2_3` or contains one."""
    if cls.__name__ in CONFLICTS_2_3:
        return True
    inner = {struct for field in cls.thrift_spec.values() for struct in structs(field[2:-1])} - outer
    return any(holds_conflict(struct, outer | {cls}) for struct in inner)


def structs(spec: Any) -> Iterator[Any]:
    """Yield the structs in thriftpy2's description of a type."""
    if isinstance(spec, tuple):
        for part in spec:
            yield from structs(part)
    elif hasattr(spec, "thrift_spec"):
        yield spec


@pytest.fixture(scope="session")
def jars(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """The jars of each release, from Maven; METASTORE_TEST_JARS names a folder that keeps them."""
    folder = Path(os.environ.get("METASTORE_TEST_JARS") or tmp_path_factory.mktemp("jars"))
    return {release: [_jar(folder, name) for name in (*names, LOGGING)] for release, names in ARTIFACTS.items()}


def _jar(folder: Path, artifact: str) -> Path:
    _, name, version = artifact.split(":")
    path = folder / f"{name}-{version}.jar"
    if not path.exists():
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
        subprocess.run(["mvn", "-q", "-B", goal, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"], check=True)
    return path


@pytest.mark.parametrize("protocol", ["binary", "compact"])
@pytest.mark.parametrize("release", ["3.1.3", "4.0.1"])
def test_every_class_comes_back_equal(jars: dict[str, list[Path]], release: str, protocol: str) -> None:
    run = JavaRun(jars[release], API, protocol)
    assert run.unknown == []
    assert run.different == set()
    assert len(run.names) == CLASSES[release]


def test_every_class_of_2_3_comes_back_equal_but_the_known_conflicts(jars: dict[str, list[Path]]) -> None:
    run = JavaRun(jars["2.3.10"], API, "binary")
    assert run.unknown == []
    assert len(run.names) == CLASSES["2.3.10"]
    assert run.different == {name for name in run.names if holds_conflict(our_class(name))}
    assert len(run.different) == 22
