"""`metastore doctor`: each check passes on a sound machine, and otherwise names the fault and its remedy."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from metastore.cli import app
from metastore.cli.server import doctor
from metastore.store.core import migrate
from metastore.store.core.database import Database
from metastore.store.core.probe import probe
from tests.support.logins.certificates import Authority
from tests.support.servers.servers import serving


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def examined(*arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return the exit status, and outcome and text by check."""
    ended = CliRunner().invoke(app, ["doctor", *arguments, "--json"])
    return ended.exit_code, {each["check"]: (each["outcome"], each["text"]) for each in json.loads(ended.stdout)}


def test_a_machine_on_which_all_is_well(tmp_path: Path, fresh_database_url: str) -> None:
    status, found = examined("--db", fresh_database_url)
    assert status == 0, found
    assert list(found) == [
        "codec",
        "descriptors",
        "settings",
        "driver",
        "database",
        *(["schema", "clock"] * ("clock" in found)),
        "warehouse",
    ]
    assert {outcome for check, (outcome, _) in found.items() if check not in {"codec", "database"}} == {"ok"}
    database = Database(fresh_database_url, pool_size=1)
    try:
        migrate.upgrade(database)
    finally:
        database.close()
    status, found = examined("--db", fresh_database_url)
    assert (status, found["schema"]) == (0, ("ok", f"revision {migrate.revisions()[-1]}"))
    assert not (tmp_path / "data").exists()  # the check leaves nothing that it made


def test_a_database_of_another_revision(tmp_path: Path) -> None:
    known = ["0001", "0002", "0003"]
    assert doctor._schema("0003", known).outcome == "ok"
    assert doctor._schema(None, known).outcome == "ok"
    assert doctor._schema("0001", known)[1:] == (
        "warning",
        "revision 0001 is older than 0003: stop older servers, then `metastore db upgrade`",
    )
    assert doctor._schema("0004", known).outcome == "failed"


def test_a_database_that_does_not_answer() -> None:
    status, found = examined("--db", "mysql://me:swordfish@127.0.0.1:1/m")
    assert (status, found["database"][0]) == (1, "failed")
    assert "see that it runs, and that db names it" in found["database"][1]
    assert "swordfish" not in str(found)
    assert found["warehouse"][0] == "ok"  # the other checks run all the same


def test_clocks_are_compared(fresh_database_url: str) -> None:
    database = Database(fresh_database_url, pool_size=1)
    try:
        ahead = probe(database).ahead
    finally:
        database.close()
    assert ahead is None or abs(ahead) < doctor.MOST_SKEW
    assert doctor._clock(-4.9).outcome == "ok"
    assert doctor._clock(7)[1:] == ("failed", "the database's clock is 7 s ahead of this machine's: set both by NTP")


def test_a_warehouse_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, found = examined("--set", f"warehouse={tmp_path}/file/lake")
    assert (status, found["warehouse"][0]) == (1, "failed")
    assert "let the server's user write there, or set warehouse" in found["warehouse"][1]


def test_a_certificate_that_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Authority(tmp_path).issue("server")  # valid for a day
    status, found = examined("--set", f"tls_certificate={certificate}")
    assert (status, found["certificate"][0]) == (0, "warning")
    assert f"tls_certificate {certificate} ends at 20" in found["certificate"][1]
    later = time.time() + timedelta(days=2).total_seconds()
    monkeypatch.setattr(time, "time", lambda: later)
    status, found = examined("--set", f"tls_certificate={certificate}")
    assert (status, found["certificate"][0]) == (1, "failed")
    status, found = examined("--set", f"tls_certificate={tmp_path}/missing.pem")
    assert (status, found["certificate"][0]) == (1, "failed")


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_too_few_descriptors() -> None:
    status, found = examined()
    assert (status, found["descriptors"][0]) == (1, "failed")
    assert "ulimit -n" in found["descriptors"][1]


def test_settings_that_do_not_fit() -> None:
    assert examined("--set", "wharehouse=/x")[1]["settings"][1].endswith("did you mean warehouse?")
    status, found = examined("--set", "hive.metastore.use.SSL=true")
    assert (status, found["settings"][0]) == (1, "failed")
    assert "tls_certificate" in found["settings"][1]
    status, found = examined("--set", "authorization=grants")
    assert (status, found["settings"][0]) == (0, "warning")


def test_the_pure_codec_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "IMPLEMENTATION", "pure")
    status, found = examined()
    assert (status, found["codec"][0]) == (0, "warning")


def test_a_server_is_asked_too(tmp_path: Path) -> None:
    with serving("--workers", "1", home=tmp_path) as server:
        assert examined("--uri", server.uri)[1]["server"][0] == "ok"
    status, found = examined("--uri", server.uri)
    assert (status, found["server"][0]) == (1, "failed")


def test_lines_are_for_people() -> None:
    ended = CliRunner().invoke(app, ["doctor"])
    assert ended.exit_code == 0
    assert "settings\tok\ta server would start with them" in ended.stdout
