"""The audit log: its lines, their users, and a file that is moved away."""

from __future__ import annotations

import json
import socket
import struct
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from thriftpy2.thrift import TException

from metastore import idl
from metastore.client import connect
from metastore.service.call.context import Call, Client, Metastore
from metastore.service.call.identity import Login
from metastore.telemetry.audit import Audit
from metastore.wire.connection.server import ServerThread
from metastore.wire.messages.protocol import Dialect, write_message
from metastore.wire.sockets.settings import WireSettings
from tests.support.catalog.methods import entries
from tests.support.servers.servers import serving
from tests.support.servers.stub_server import Stub
from tests.wire.connection.test_calls import wait_until


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_changes_and_refusals_have_lines_and_reads_have_not(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    options = {"authorization": "grants", "admin_users": "root", "audit_log": str(file), "workers": "2"}
    with serving(*(part for name, value in options.items() for part in ("--set", f"{name}={value}")), home=tmp_path) as server:
        for user in ("root", "bob"):
            with connect(server.uri) as client:
                client.set_ugi(user, [])
                client.get_all_databases()
                for call in (lambda: client.create_database(idl.Database(name="shop")), lambda: client.get_database("shop")):
                    try:
                        call()
                    except TException:
                        assert user == "bob"
    assert any("the user that such a client names in set_ugi is not checked" in line["event"] for line in server.lines())
    audited = [(each["user"], each["method"], each["object"], each["outcome"]) for each in lines(file)]
    assert audited == [
        ("root", "create_database", "shop", "ok"),
        ("bob", "create_database", "shop", "refused"),
        ("bob", "get_database", "shop", "refused"),
    ]
    assert all(each["address"].startswith("127.0.0.1:") and each["ms"] > 0 for each in lines(file))
    assert {each["request"] for each in lines(file)} <= {line.get("request") for line in server.lines()}


HTTP_HEAD = "POST /metastore HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-thrift\r\nContent-Length: {}\r\n\r\n"


@pytest.mark.parametrize("head", ["", HTTP_HEAD], ids=["Thrift", "HTTP"])
def test_a_change_has_a_line_although_its_client_has_gone(stub: Stub, tmp_path: Path, head: str) -> None:
    file = tmp_path / "audit.log"

    def drop(_call: Call, _args: Any) -> None:
        stub.entered.set()
        stub.release.wait(30)

    message = write_message(Dialect("binary", framed=False), "drop_database", 1, 1, idl.service.drop_database_args(name="shop"))
    with ServerThread(WireSettings(port=0, audit_log=str(file)), cast(Metastore, stub), entries({"drop_database": drop})) as server:
        with socket.create_connection((server.host, server.port), 10) as sock:
            sock.sendall(head.format(len(message)).encode() + message)
            assert stub.entered.wait(30)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a close resets the connection
        stub.release.set()
        wait_until(lambda: not server._worker._active)
    assert [(each["method"], each["outcome"]) for each in lines(file)] == [("drop_database", "ok")]


def test_a_line_holds_the_login_and_the_user_that_it_acts_for(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    for login in (Login("alice", "kerberos", "hive"), Login("hive", "kerberos")):  # the second acts for alice by set_ugi
        client = Client("10.0.0.1:77", user="alice", login=login)
        Audit(str(file), "json").record(client, "drop_table", "d.t", "ok", 0.0015)
    for line in lines(file):
        del line["time"], line["request"]
        assert line == {
            "user": "alice", "real_user": "hive", "mechanism": "kerberos", "address": "10.0.0.1:77", "method": "drop_table",
            "object": "d.t", "outcome": "ok", "ms": 1.5, "query": None,
        }  # fmt: skip


def test_hives_format_keeps_one_call_on_one_line(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    Audit(str(file), "hive").record(Client("10.0.0.1:77", user="a\nugi=root"), "drop_table", "d.t\tx", "NoSuchObject", 0.0015)
    (line,) = file.read_text().splitlines()
    assert "\tugi=a\\nugi=root\tip=10.0.0.1\tcmd=drop_table : d.t\\tx\toutcome=NoSuchObject\tms=1.5\t" in line


def test_a_file_that_was_moved_away_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    audit = Audit(str(file), "json")
    audit.record(Client("a:1"), "drop_table", "d.t", "ok", 0)
    file.rename(tmp_path / "audit.log.1")
    audit.record(Client("a:1"), "drop_table", "d.u", "ok", 0)
    assert [each["object"] for each in lines(tmp_path / "audit.log.1")] == ["d.t"]
    assert [each["object"] for each in lines(file)] == ["d.u"]


def test_lines_of_several_writers_do_not_mix(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    audits = [Audit(str(file), "json") for _ in range(4)]

    def write(audit: Audit) -> None:
        for _ in range(200):
            audit.record(Client("a:1", user="u" * 1000), "drop_table", "t" * 1000, "ok", 0)

    threads = [threading.Thread(target=write, args=(audit,)) for audit in audits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(file)) == 800


def test_a_file_that_can_not_be_written_stops_the_start(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match=r"audit_log .* can not be written"),
        serving("--set", f"audit_log={tmp_path}/no/folder/audit.log", home=tmp_path),
    ):
        pass


def test_a_full_disk_fails_no_call() -> None:
    audit = Audit("/dev/full", "json")
    audit.record(Client("a:1"), "drop_table", "d.t", "ok", 0)
    with pytest.raises(OSError, match="No space left"):
        audit._file.close()  # otherwise a later test would report its end as an error
