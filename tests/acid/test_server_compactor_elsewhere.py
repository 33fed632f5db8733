"""Processes of a server compact where clients need a login, TLS and privileges, and where files are in an object store."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from pyarrow import orc

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")
pytest.importorskip("k5test", reason="for a KDC")

from metastore.client import connect
from metastore.client_login import Plain
from metastore.idl import CompactionType
from metastore.rules.transactions.compactions import SERVERS_OWN
from tests.acid.test_server_compactor import SETTINGS, Cluster, numbers, read_base, running
from tests.streaming.reading import rows
from tests.support.acid.acid_tables import stored_table
from tests.support.logins.certificates import Authority
from tests.support.logins.kdc import Kdc
from tests.support.logins.secured import Secured
from tests.support.servers.servers import COMMAND, ROOT, environment, serving
from tests.support.servers.waiting import until


@contextmanager
def guarded(home: Path, *settings: str, tls: ssl.SSLContext | None = None, **login: Any) -> Iterator[Cluster]:
    """Start a server on the database and warehouse that another has left in a folder, with a client that logs in."""
    options = [part for setting in (*SETTINGS, *settings) for part in ("--set", setting)]
    where = ("--db", f"sqlite:///{home}/m.db", "--warehouse", str(home / "warehouse"), "--workers", "1")
    with serving(*where, *options, home=home) as server, connect(server.uri, tls=tls, **login) as client:
        yield Cluster(server, client)


def fill(home: Path) -> None:
    """Make a table of three deltas in a folder, by a server without logins."""
    with running(home) as cluster:
        cluster.make("t")
        for first in (0, 10, 20):
            cluster.write("t", numbers(first, first + 10))


def compacts(cluster: Cluster) -> None:
    table = stored_table(cluster.client, "t")
    before = rows(cluster.client, table)
    assert len(before) == 30
    entry = cluster.compacted(cluster.ask("t", CompactionType.MAJOR))
    assert (entry.workerVersion, entry.hadoopJobId) == (SERVERS_OWN, "30 of 30 rows")
    until(lambda: cluster.entry(entry.id).state, lambda state: state == "succeeded", missing="cleaned")
    assert read_base(table) == before


def test_with_logins_tls_and_privileges(tmp_path: Path) -> None:
    """The process is not a client: it needs no password, no certificate and no privilege."""
    fill(tmp_path)
    authority = Authority(tmp_path)
    command = [*COMMAND, "users", "add", "alice", "--key", "--db", f"sqlite:///{tmp_path}/m.db"]
    key = subprocess.run(command, env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    settings = (
        "authentication=users",
        f"tls_certificate={authority.issue('server')}",
        "tls_required=true",
        "authorization=grants",
        "admin_users=alice",
    )
    context = ssl.create_default_context(cafile=str(authority.file))
    with guarded(tmp_path, *settings, tls=context, login=Plain("alice", key)) as cluster:
        compacts(cluster)


@pytest.mark.slow
def test_with_kerberos(kdc: Kdc, tmp_path: Path) -> None:
    """The process has no ticket and no token."""
    secured = Secured(kdc, tmp_path / "home")
    fill(secured.home)
    settings = {setting.partition("=")[0]: setting.partition("=")[2] for setting in SETTINGS}
    more = settings | {"db": f"sqlite:///{secured.home}/m.db", "warehouse": str(secured.home / "warehouse"), "admin_users": "alice"}
    with secured.serve(**more, authorization="grants") as server, secured.kerberos() as client:
        compacts(Cluster(server, client))


def test_in_an_object_store(s3_server: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = fsspec.filesystem("s3", **s3_server)
    system.mkdir("compacted")
    for name, option in (("ENDPOINT_URL", "endpoint_url"), ("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "secret")):
        monkeypatch.setenv(f"AWS_{name}", s3_server[option])
    settings = (*SETTINGS, f"filesystem_options={json.dumps({'s3': s3_server})}")
    options = [part for setting in settings for part in ("--set", setting)]
    with (
        serving("--db", f"sqlite:///{tmp_path}/m.db", "--warehouse", "s3a://compacted/warehouse", *options, home=tmp_path) as server,
        connect(server.uri) as client,
    ):
        cluster = Cluster(server, client)
        table = cluster.make("t", "id int, v string", "p int")
        assert table.sd.location.startswith("s3a://")
        for first in (0, 10, 20):
            cluster.write("t", [{**row, "p": row["id"] % 2} for row in numbers(first, first + 10)])
        place = table.sd.location.removeprefix("s3a://")

        def files(partition: str) -> list[str]:
            system.invalidate_cache()
            return [path for path in system.find(f"{place}/{partition}") if "/bucket_" in path]

        assert len(files("p=0")) == len(files("p=1")) == 3
        keys = [cluster.ask("t", kind, f"p={value}") for value, kind in enumerate((CompactionType.MINOR, CompactionType.MAJOR))]
        for key in keys:
            assert cluster.compacted(key).workerVersion == SERVERS_OWN
            until(lambda key=key: cluster.entry(key).state, lambda state: state == "succeeded", missing="cleaned")  # type: ignore[misc]
        for value, directory in enumerate(("delta_0000001_0000003", "base_0000003")):
            (path,) = files(f"p={value}")
            assert path.removeprefix(f"{place}/p={value}/").startswith(directory)
            found = orc.ORCFile(pa.BufferReader(system.cat_file(path))).read().to_pylist()
            assert [row["row"]["id"] for row in found] == list(range(value, 30, 2))
