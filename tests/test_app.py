"""Starts and stops of a server: the messages of a refused start, and the files and processes that are left."""

import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from metastore.app import check, compactors, prepare, warnings
from metastore.client import connect
from metastore.config import Config, load
from metastore.errors import MetaError
from tests.support.servers.servers import COMMAND, ROOT, environment, free_port, run_command, serving


def test_a_server_starts_on_an_empty_database_and_again_on_its_own(fresh_database_url: str, tmp_path: Path) -> None:
    for _ in range(2):
        with (
            serving("--db", fresh_database_url, "--workers", "2", home=tmp_path, new=True) as server,
            connect(server.uri) as client,
        ):
            assert client.getStatus() == 2
        assert server.process.returncode == 0


def test_servers_that_start_at_once_make_the_schema_once(fresh_database_url: str, tmp_path: Path) -> None:
    options = ("--db", fresh_database_url, "--workers", "1")
    processes = [
        subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", *options], env=environment(tmp_path), cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]  # fmt: skip
    lines = [process.stdout.readline() for process in processes if process.stdout]
    for process in processes:
        process.terminate()
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [line.startswith("ready on thrift://127.0.0.1:") for line in lines] == [True] * 4, errors
    assert [process.returncode for process in processes] == [0] * 4


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_command("serve", "--port", str(port), home=tmp_path)
    assert ended.returncode == 1
    assert f"127.0.0.1:{port}: Address already in use" in ended.stderr


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_database_that_does_not_answer_is_named(kind: str, tmp_path: Path) -> None:
    ended = run_command("serve", "--port", "0", "--db", f"{kind}://somebody@127.0.0.1:{free_port()}/metastore", home=tmp_path)
    assert ended.returncode == 1
    assert f"database {kind}" in ended.stderr
    assert "refused" in ended.stderr
    assert "Traceback" not in ended.stderr


def start(tmp_path: Path, *options: str, path: Path = ROOT) -> str:
    """Start a server that must refuse to start; return its message. `path` is the first folder where Python looks for modules."""
    arguments = ("serve", "--port", "0", *options)
    if path is ROOT:
        ended = run_command(*arguments, home=tmp_path)
    else:
        variables = environment(tmp_path, {"PYTHONPATH": f"{path}:{ROOT}"})
        ended = subprocess.run([*COMMAND, *arguments], env=variables, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1, ended.stdout
    assert "Traceback" not in ended.stderr
    return " ".join(ended.stderr.split())


@pytest.mark.parametrize("option", ["--warehouse", "--external-warehouse"])
def test_a_warehouse_without_a_driver_is_refused_at_the_start(option: str, tmp_path: Path) -> None:
    missing = tmp_path / "modules"
    missing.mkdir()
    for name in ("s3fs", "gcsfs"):
        (missing / f"{name}.py").write_text("raise ImportError('not here')")  # as if it were not installed
    said = start(tmp_path, option, "s3a://bucket/warehouse", path=missing)
    assert f"setting {option[2:].replace('-', '_')}: s3a://bucket/warehouse: the driver of s3a:// is not installed" in said
    assert "pip install '.[s3]'" in said
    assert "pip install '.[gcs]'" in start(tmp_path, option, "gs://bucket/warehouse", path=missing)
    assert not (tmp_path / "data" / "metastore" / "metastore.db").exists(), "nothing was made"


@pytest.mark.parametrize(
    ("location", "said"),
    [("s4://bucket/w", "no driver supports the scheme s4://"), ("s3a:///w", "names no bucket"), ("file://host/w", "names the host host")],
)
def test_a_warehouse_that_names_no_file_system_is_refused_at_the_start(location: str, said: str, tmp_path: Path) -> None:
    assert said in start(tmp_path, "--warehouse", location)


def test_a_server_opens_as_many_files_as_the_system_lets_it(tmp_path: Path) -> None:
    low = ("sh", "-c", 'ulimit -S -n 50 && exec "$@"', "sh", *COMMAND)
    with serving("--workers", "1", home=tmp_path, command=low) as server:
        for each in (server.process.pid, *server.children()):
            soft, hard = resource.prlimit(each, resource.RLIMIT_NOFILE)
            assert soft == hard > 50


def test_a_whitelist_that_can_not_be_matched_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(MetaError, match=r"partition_name_whitelist: Invalid pattern '\(\?=a\)'"):
        prepare(Config(db=f"sqlite:///{tmp_path}/m.db", partition_name_whitelist="(?=a)"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_its_workers(number: int, tmp_path: Path) -> None:
    with serving("--workers", "2", home=tmp_path) as server:
        server.process.send_signal(number)
        assert server.process.wait(60) == 0
        host, port = server.uri.removeprefix("thrift://").split(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))


def test_a_hive_site_is_taken_as_it_is(tmp_path: Path) -> None:
    hive_site = tmp_path / "hive-site.xml"
    hive_site.write_text(
        f"<configuration><property><name>hive.metastore.warehouse.dir</name><value>{tmp_path}/lake</value></property></configuration>"
    )
    with (
        serving("--workers", "1", "--hive-site", str(hive_site), home=tmp_path) as server,
        connect(server.uri) as client,
    ):
        assert client.get_database("default").locationUri == f"file:{tmp_path}/lake"


def test_a_hive_site_that_asks_for_more_safety_ends_the_start_before_anything_is_made(tmp_path: Path) -> None:
    properties = {"hive.metastore.sasl.enabled": "true", "hive.metastore.use.SSL": "true", "hive.x.y": "1", "javax.jdo.option.X": "1"}
    items = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    hive_site = tmp_path / "hive-site.xml"
    hive_site.write_text(f"<configuration>{items}</configuration>")
    ended = run_command("serve", "--port", "0", "--hive-site", str(hive_site), home=tmp_path / "home")
    assert (ended.returncode, ended.stdout) == (1, "")
    for name in ("hive.metastore.sasl.enabled", "kerberos_principal", "hive.metastore.use.SSL", "tls_certificate"):
        assert name in ended.stderr
    (counted,) = [line for line in ended.stderr.splitlines() if "have no effect" in line]
    assert '"number":2' in counted
    assert not (tmp_path / "home").exists()


def test_privileges_of_compactions_are_asked_for_by_our_setting_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hive's file may request workers that HiveServer2 runs: a server without pyorc warns about that, and starts."""
    monkeypatch.setitem(sys.modules, "pyorc", None)
    site = tmp_path / "hive-site.xml"
    site.write_text(
        "<configuration><property><name>hive.compactor.worker.threads</name><value>2</value></property></configuration>", "utf-8"
    )
    given = load(hive_site=site, environment={})
    check(given)
    assert compactors(given) is None
    (warning,) = warnings(given)
    assert f"hive.compactor.worker.threads ({site})" in warning
    assert "needs pyorc" in warning
    assert "compactor_worker_threads=0" in warning
    for name in ("compactor_worker_threads", "compactor-worker-threads"):
        with pytest.raises(MetaError, match="needs pyorc"):
            check(load(hive_site=site, assignments=[f"{name}=1"], environment={}))
    assert warnings(load(hive_site=site, assignments=["compactor_worker_threads=0"], environment={})) == []
    monkeypatch.undo()
    assert warnings(given) == []
    assert compactors(given) is not None
