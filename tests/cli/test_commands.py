import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import metastore
from metastore import idl
from metastore.cli import app
from metastore.client import connect
from metastore.config import settings
from metastore.store.core import migrate
from metastore.wire.codec import IMPLEMENTATION
from tests.support.servers.servers import COMMAND, ROOT, serving


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_the_version_says_which_codec_serves() -> None:
    assert run("--version").stdout == f"metastore {metastore.__version__}, {IMPLEMENTATION} codec\n"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the table taxi.trips, which has two partitions."""
    with serving("--workers", "1", home=tmp_path_factory.mktemp("server")) as server:
        with connect(server.uri) as client:
            client.create_database(idl.Database(name="taxi", description="trips of 2024"))
            storage = idl.StorageDescriptor(
                cols=[idl.FieldSchema(name="id", type="bigint", comment="the number")],
                serdeInfo=idl.SerDeInfo(serializationLib="org.example.SerDe"),
            )
            keys = [idl.FieldSchema(name="day", type="string")]
            client.create_table(
                idl.Table(
                    dbName="taxi",
                    tableName="trips",
                    sd=storage,
                    partitionKeys=keys,
                    parameters={},
                    tableType="MANAGED_TABLE",
                )
            )
            for day in ("2024-01-01", "2024-01-02"):
                client.append_partition("taxi", "trips", [day])
        yield server.uri


@pytest.mark.parametrize(
    "command", [[], ["serve"], ["db", "upgrade"], ["db", "current"], ["config"], ["ls"], ["show"], ["call"], ["locations", "grant"]]
)
def test_every_command_explains_itself(command: list[str]) -> None:
    shown = run(*command, "--help")
    assert shown.exit_code == 0
    assert "Usage" in shown.output


def test_config_shows_every_setting_and_its_source() -> None:
    shown = run("config", "--json", "--set", "hive.metastore.port=1", "--db", "mysql://me:swordfish@h/m")
    values = json.loads(shown.stdout)
    assert list(values) == [setting.name for setting in settings()]
    assert values["port"] == {"value": "1", "source": "--set hive.metastore.port"}
    assert values["host"]["source"] == "default"
    assert values["db"] == {"value": "mysql://me:***@h/m", "source": "--db"}


def test_config_takes_names_of_hive() -> None:
    assert run("config", "fs.trash.interval").stdout == "trash_interval\t0\tdefault\n"


def test_config_names_a_setting_that_is_not_there() -> None:
    ended = run("config", "port", "wharehouse")
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "there is no setting wharehouse; did you mean warehouse?" in ended.stderr


def test_config_checks_the_settings_of_hives_file(tmp_path: Path) -> None:
    site = tmp_path / "hive-site.xml"
    values = {"hive.metastore.use.SSL": "true", "hive.metastore.port": "1", "hive.x": "y", "javax.jdo.option.ConnectionPassword": "hunter2"}
    items = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items())
    site.write_text(f"<configuration>{items}</configuration>")
    ended = run("config", "--check", "--hive-site", str(site))
    assert ended.exit_code == 1
    outcomes = {line.split("\t")[0]: line.split("\t")[1] for line in ended.stdout.splitlines()}
    assert list(outcomes.items()) == list(zip(values, ["refused", "used", "not used", "not needed"], strict=True))
    assert "hive.metastore.use.SSL" in ended.stderr
    assert "tls_certificate" in ended.stderr
    assert "hunter2" not in ended.output
    assert "hive.x\tnot used" in run("config", "hive.x", "--hive-site", str(site)).stdout
    passed = run("config", "--check", "--json", "--hive-site", str(site), "--set", "hive.metastore.use.SSL=false")
    assert passed.exit_code == 0
    assert json.loads(passed.stdout)["error"] is None
    assert json.loads(passed.stdout)["properties"]["hive.metastore.use.SSL"]["outcome"] == "not needed"


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("pre_event_listeners=com.example.Java", "does not name a class of Python's"),
        ("host=0.0.0.0", "no setting decides who may log in"),
        ("audit_log=/nowhere/audit.log", "audit_log /nowhere/audit.log can not be written"),
        pytest.param(
            "authentication=kerberos",
            "needs kerberos_principal and kerberos_keytab",
            marks=pytest.mark.skipif(find_spec("gssapi") is None, reason="gssapi is not installed"),
        ),
        ("partition_name_whitelist=(", "partition_name_whitelist"),
    ],
)
def test_config_checks_all_that_ends_a_start(tmp_path: Path, assignment: str, message: str) -> None:
    ended = run("config", "--check", "--set", assignment)
    assert ended.exit_code == 1
    assert message in ended.stderr
    assert not list(tmp_path.iterdir())  # nothing was made


def test_a_setting_that_does_not_fit_ends_with_status_2() -> None:
    ended = run("config", "--set", "wharehouse=/x")
    assert ended.exit_code == 2
    assert "did you mean warehouse?" in ended.stderr


def test_db_upgrade_makes_the_schema_and_current_shows_it(fresh_database_url: str) -> None:
    newest = migrate.revisions()[-1]
    before = run("db", "current", "--db", fresh_database_url)
    assert (before.exit_code, before.stdout) == (1, f"no schema (this version: {newest})\n")
    assert run("db", "upgrade", "--db", fresh_database_url).stdout == f"now at revision {newest}\n"
    assert run("db", "upgrade", "--db", fresh_database_url).stdout == f"already at revision {newest}\n"
    after = run("db", "current", "--db", fresh_database_url)
    assert (after.exit_code, after.stdout) == (0, f"{newest} (this version: {newest})\n")


def test_db_names_a_database_of_an_unknown_kind() -> None:
    ended = run("db", "current", "--db", "oracle://h/x")
    assert ended.exit_code == 1
    assert "oracle" in ended.stderr


def test_db_names_a_database_that_does_not_answer() -> None:
    for url in ("postgresql://me:swordfish@127.0.0.1:1/m", "mysql://me:swordfish@127.0.0.1:1/m"):
        ended = run("db", "current", "--db", url)
        assert ended.exit_code == 1
        assert "127.0.0.1" in ended.stderr
        assert "swordfish" not in ended.stderr


def test_ls_lists_databases_tables_and_partitions(uri: str) -> None:
    assert run("ls", "--uri", uri).stdout.splitlines() == ["default", "taxi"]
    assert run("ls", "--uri", uri, "--pattern", "t*").stdout.splitlines() == ["taxi"]
    assert run("ls", "--uri", uri, "--catalog", "hive").stdout.splitlines() == ["default", "taxi"]
    assert run("ls", "taxi", "--uri", uri).stdout == "trips\tMANAGED_TABLE\t\n"
    assert run("ls", "taxi.trips", "--uri", uri).stdout.splitlines() == ["day=2024-01-01", "day=2024-01-02"]
    assert json.loads(run("ls", "taxi.trips", "--limit", "1", "--uri", uri, "--json").stdout) == ["day=2024-01-01"]


def test_show_prints_a_database_a_table_and_a_partition(uri: str) -> None:
    assert json.loads(run("show", "taxi", "--uri", uri, "--json").stdout)["description"] == "trips of 2024"
    assert "sd.cols[0]\tid bigint  the number" in run("show", "taxi.trips", "--uri", uri).stdout.splitlines()
    partition = json.loads(run("show", "taxi.trips", "day=2024-01-02", "--uri", uri, "--json").stdout)
    assert partition["values"] == ["2024-01-02"]


def test_call_takes_arguments_in_order_and_by_name(uri: str) -> None:
    names = ["day=2024-01-01", "day=2024-01-02"]
    assert json.loads(run("call", "get_partition_names", "taxi", "trips", "10", "--uri", uri).stdout) == names
    by_name = run("call", "get_partition_names", "taxi", "max_parts=1", "tbl_name=trips", "--uri", uri)
    assert json.loads(by_name.stdout) == names[:1]
    request = '{"dbName": "taxi", "tblName": "trips"}'
    assert json.loads(run("call", "get_table_req", request, "--uri", uri).stdout)["table"]["tableName"] == "trips"


def test_a_refusal_of_the_server_ends_with_status_1(uri: str) -> None:
    ended = run("call", "get_database", "nowhere", "--uri", uri)
    assert ended.exit_code == 1
    assert ended.stderr.startswith("metastore: NoSuchObjectException: ")
    assert "nowhere" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get_tabel"], "no method get_tabel; did you mean get_table"),
        (["get_partition_names", "a", "b", "ten"], "'ten' is not JSON"),
        (["get_partition_names", "a", "b", "1", "2"], "takes 3 arguments (db_name, tbl_name, max_parts), got 4"),
        (["get_table_req", "{}{"], "is not JSON"),
        (["get_table_req", '{"table": 1}'], "GetTableRequest has no field table"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_before_it_is_made(arguments: list[str], message: str) -> None:
    ended = run("call", *arguments, "--uri", "thrift://127.0.0.1:1")
    assert ended.exit_code == 2
    assert message in ended.stderr


def test_a_server_that_is_not_there_is_named() -> None:
    ended = run("ls", "--uri", "thrift://127.0.0.1:1")
    assert ended.exit_code == 1
    assert "thrift://127.0.0.1:1: " in ended.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["ls", "nosuch"],
        ["ls", "taxi.nosuch"],
        ["ls", "--catalog", "nosuch"],
        ["show", "nosuch"],
        ["check", "nosuch"],
        ["check", "taxi.nosuch"],
    ],
)
def test_a_missing_object_is_not_an_empty_list(uri: str, command: list[str]) -> None:
    ended = run(*command, "--uri", uri)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "nosuch" in ended.stderr


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if command.hidden:
            continue
        if hasattr(command, "list_commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_takes_json_and_says_where_it_works(path: tuple[str, ...]) -> None:
    options = {option for parameter in COMMANDS[path].params for option in parameter.opts}
    assert path in {("serve",), ("compactor",)} or "--json" in options
    assert not options.isdisjoint({"--uri", "--db", "--primary"})


def test_words_for_many_are_in_the_plural() -> None:
    groups = {path[0] for path in COMMANDS if len(path) > 1}
    assert groups == {"db", "txns", "locks", "locations", "compactions", "users", "tokens"}


@pytest.mark.parametrize("reads", [0, 1])
def test_a_reader_that_has_had_enough_ends_a_command_quietly(uri: str, reads: int) -> None:
    names = [f"trip{number:05}" + "x" * 90 for number in range(2000)]  # more than a pipe and its buffer hold
    with connect(uri) as client:
        client.create_database(idl.Database(name=f"many{reads}"))
        storage = idl.StorageDescriptor(cols=[], serdeInfo=idl.SerDeInfo())
        table = idl.Table(dbName=f"many{reads}", tableName="t", sd=storage, partitionKeys=[idl.FieldSchema(name="p", type="string")])
        client.create_table(table)
        parts = [idl.Partition(dbName=f"many{reads}", tableName="t", values=[name], sd=storage) for name in names]
        client.add_partitions(parts)
    command = [*COMMAND, "ls", f"many{reads}.t", "--uri", uri]
    listing = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert listing.stdout is not None
    assert listing.stderr is not None
    for _ in range(reads):
        listing.stdout.readline()
    listing.stdout.close()
    with listing.stderr:
        assert listing.stderr.read() == ""
    assert listing.wait(60) in {0, 1}


@pytest.mark.parametrize("content", [None, "no certificate"])
@pytest.mark.parametrize("command", [["ls"], ["slow"], ["top", "--once"]])
def test_a_file_of_authorities_that_does_not_fit_is_named(tmp_path: Path, command: list[str], content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    ended = run(*command, "--tls-ca", str(file), "--uri", "thrift://127.0.0.1:1")
    assert ended.exit_code == 1
    assert f"--tls-ca {file}: " in ended.stderr


@pytest.mark.parametrize("url", ["postgresql://me:her@ring@h/m", "mysql://me:her@ring@127.0.0.1:1/m"])
@pytest.mark.parametrize("command", [["db", "current"], ["doctor"], ["config", "db"], ["config", "--check"], ["users", "list"]])
def test_a_password_with_an_at_sign_is_shown_nowhere(command: list[str], url: str) -> None:
    ended = run(*command, "--db", url)
    assert "ring@" not in ended.output
    assert "her@" not in ended.output
    if command != ["config", "db"]:
        assert "write %40" in ended.output
        assert ended.exit_code == 1


def test_health_asks_a_server_elsewhere_too(uri: str) -> None:
    assert run("health", "--uri", uri).stdout == "ready\n"
    assert json.loads(run("health", "--uri", uri, "--json").stdout)["status"] == "ready"
    ended = run("health", "--uri", "thrift://127.0.0.1:1")
    assert (ended.exit_code, "no server answers at 127.0.0.1:1" in ended.stderr) == (1, True)


def test_a_partition_without_its_table_is_refused() -> None:
    assert run("show", "taxi", "day=1").exit_code == 2


def test_locations_are_granted_listed_and_taken_back(tmp_path: Path) -> None:
    db = ("--db", f"sqlite:///{tmp_path}/m.db")
    assert run("db", "upgrade", *db).exit_code == 0
    for arguments in (("bob", "/data/bob/", "--user"), ("staff", "s3a://bucket/staff", "--group")):
        assert run("locations", "grant", *arguments, *db).exit_code == 0
    assert run("locations", "list", *db).stdout == "user\tbob\tfile:///data/bob\ngroup\tstaff\ts3://bucket/staff\n"
    for arguments, message in (  # type: ignore[assignment]
        (("grant", "bob", "file:/data/bob", "--user"), "bob may use file:///data/bob already"),
        (("grant", "nobody", "/data"), "Role nobody does not exist"),
        (("grant", "bob", "data", "--user"), "'data' is not a location"),
        (("revoke", "bob", "/data", "--user"), "bob was not granted file:///data"),
    ):
        failed = run("locations", *arguments, *db)
        assert (failed.exit_code, message in failed.stderr) == (1, True), failed.stderr
    assert run("locations", "grant", "x", "/data", "--user", "--group", *db).exit_code == 2
    assert run("locations", "revoke", "bob", "s3a:///../x", "--user", *db).exit_code == 1
    assert run("locations", "revoke", "bob", "/data/bob", "--user", *db).exit_code == 0
    assert run("locations", "list", *db).stdout == "group\tstaff\ts3://bucket/staff\n"


LOADED = "import sys; {}; print(*sorted(name for name in {!r} if name in sys.modules))"


@pytest.mark.parametrize(
    ("done", "heavy"),
    [
        ("import metastore.cli", ("sqlalchemy", "pyarrow", "metastore.idl", "metastore.app", "fsspec")),
        ("import metastore.app, metastore.cli.server.serve", ("pyarrow", "pyspark", "starlette", "opentelemetry", "prometheus_client")),
    ],
    ids=["the command alone", "a server"],
)
def test_nothing_is_loaded_that_is_not_used(done: str, heavy: tuple[str, ...]) -> None:
    ended = subprocess.run([sys.executable, "-c", LOADED.format(done, heavy)], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == []
