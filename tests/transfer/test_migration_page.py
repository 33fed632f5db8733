"""The commands of docs/migration.md run as on the page, on a Java metastore that is filled with every kind of object."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from metastore.client import connect
from tests.support.catalog.full_catalog import Filler
from tests.support.databases import databases
from tests.support.engines.java_metastore import java_metastore
from tests.support.servers.servers import ROOT, run_command, serving

PAGE = (ROOT / "docs" / "migration.md").read_text()
SECTIONS = {
    title: [line.partition(" #")[0].strip() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    for title, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}
OF_JAVA = "--without-field create_time --without-field transient_lastDdlTime --without-field grant_time --without-field write_id"


class Old(NamedTuple):
    """The Java metastore: its database and its server."""

    database: str
    server: str


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Old]:
    home = tmp_path_factory.mktemp("old")
    with ExitStack() as stack:
        database = stack.enter_context(contextmanager(databases.fresh)("postgresql", home))
        server = stack.enter_context(java_metastore(database, home / "java"))
        with connect(server) as client:
            Filler(client, f"file:{home / 'data'}").everything()
        yield Old(database, server)


@pytest.fixture
def new(tmp_path: Path) -> Iterator[str]:
    yield from databases.fresh("postgresql", tmp_path)


def runner(home: Path, texts: dict[str, str]) -> Callable[[str, str], subprocess.CompletedProcess[str]]:
    """Return a function that runs the command of a section that begins with some words, and marks it as run."""

    def run(section: str, begin: str) -> subprocess.CompletedProcess[str]:
        lines = [line for line in SECTIONS[section] if line.startswith(f"metastore {begin}")]
        line = lines[0]
        for old, by in texts.items():
            line = line.replace(old, by)
        SECTIONS[section].remove(lines[0])
        return run_command(*shlex.split(line)[1:], home=home, cwd=home)

    return run


@pytest.mark.slow
def test_try_it(old: Old, new: str, tmp_path: Path) -> None:
    run = runner(tmp_path, {"$OLD": old.database, "$NEW": new})
    tried = run("Try it", "import $OLD --dry-run")
    assert tried.returncode == 0, tried.stderr
    imported = run("Try it", "import $OLD --db")
    assert imported.returncode == 0, imported.stderr
    verified = run("Try it", "verify")
    assert (verified.returncode, verified.stdout.splitlines()[-1]) == (0, "equal")
    (serve,) = (line for line in SECTIONS["Try it"] if line.startswith("metastore serve"))
    options = shlex.split(serve.replace("$NEW", new).replace("--port 9084", ""))[2:]
    with serving(*options, home=tmp_path) as server, connect(server.uri) as client:
        assert "orders" in client.get_all_tables("sales")
    SECTIONS["Try it"].remove(serve)


@pytest.mark.slow
def test_over_thrift(old: Old, new: str, tmp_path: Path) -> None:
    run = runner(tmp_path, {"thrift://old:9083": old.server, "$NEW": new})
    imported = run("Over Thrift", "import")
    assert imported.returncode == 0, imported.stderr
    verified = run("Over Thrift", "verify")
    assert (verified.returncode, verified.stdout.splitlines()[-1]) == (0, "equal"), verified.stdout


@pytest.mark.slow
def test_without_a_long_pause_and_the_way_back(old: Old, new: str, tmp_path: Path) -> None:
    run = runner(tmp_path, {"$OLD": old.database, "$NEW": new, "metastore follow": "metastore follow --once"})
    assert run("Without a long pause", "import").returncode == 0
    followed = run("Without a long pause", "follow")
    assert followed.returncode == 0, followed.stderr
    with ExitStack() as stack:
        fresh = stack.enter_context(contextmanager(databases.fresh)("postgresql", tmp_path))
        java = stack.enter_context(java_metastore(fresh, tmp_path / "java"))
        texts = {"thrift://java:9083": java, "postgresql://hive:PW@db1/fresh": fresh, "$NEW": new}
        run = runner(tmp_path, {**texts, "--without-field create_time --without-field transient_lastDdlTime ..": OF_JAVA})
        exported = run("The way back", "export")
        assert exported.returncode == 0, exported.stderr
        verified = run("The way back", "verify")
        counts = dict(re.findall(r"^(\w+)\t(\d+\t\d+)$", verified.stdout, re.MULTILINE))
        same = ("role", "catalog", "connector", "database", "partition", "constraint", "function", "privilege", "resource_plan", "schema")
        assert [kind for kind in same if len(set(counts[kind].split("\t"))) != 1] == []
        # The page says why: the table is in the managed warehouse of the other server.
        assert re.findall(r"^table (\S+): only in", verified.stdout, re.MULTILINE) == ["hive.sales.acid"]
        assert "table hive.sales.acid" in exported.stdout + exported.stderr


@pytest.mark.slow
def test_every_command_of_the_page_was_run() -> None:
    """The tests above have run the commands; this one is the last in the file."""
    assert {title: left for title, lines in SECTIONS.items() if (left := [line for line in lines if line.startswith("metastore ")])} == {}
