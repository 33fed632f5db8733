"""The server for tests of other projects, used as by these tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from metastore.idl import Database
from metastore.testing import serving

THEIRS = """
import pytest


@pytest.fixture(scope="session")
def metastore_settings():
    return {"workers": 1, "default_catalog": "lake"}


def test_a_database(metastore_server):
    from metastore.idl import Database
    with metastore_server.connect() as client:
        client.create_database(Database(name="d"))


def test_the_same_server(metastore_server):
    with metastore_server.connect() as client:
        found = client.get_database("d")
    assert found.catalogName == "lake"
    assert found.locationUri.startswith(f"file:{metastore_server.warehouse}/")
    assert metastore_server.log.exists()
"""


def test_pytest_finds_the_fixture_and_its_settings(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(THEIRS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "made"), str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_a_server_goes_with_its_directory_unless_that_was_given(tmp_path: Path) -> None:
    with serving() as server, server.connect() as client:
        client.create_database(Database(name="d"))
        assert (server.warehouse / "d.db").is_dir()
    assert not server.warehouse.parent.exists()
    for made in (True, False):
        with serving(tmp_path / "kept") as server, server.connect() as client:
            if made:
                client.create_database(Database(name="d"))
            assert client.get_database("d").name == "d"


def test_settings_are_given_by_name(tmp_path: Path) -> None:
    with (
        serving(authorization="grants", admin_users=["root"], special_characters_in_table_names=False) as server,
        server.connect() as client,
    ):
        client.set_ugi("eve", [])
        assert client.get_all_databases() == ["default"]
        client.set_ugi("root", [])
        with pytest.raises(Exception, match="a-b is not a valid database name"):
            client.create_database(Database(name="a-b"))


def test_a_server_that_does_not_start_raises_the_reason() -> None:
    with pytest.raises(RuntimeError, match="no_such_setting"), serving(no_such_setting=1):
        pass
