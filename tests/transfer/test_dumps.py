"""Files of dumps: a truncated or changed dump is refused, and so is any other file. The commands that make and read dumps."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from metastore.errors import InvalidInput
from metastore.transfer.dumps import DumpReader, DumpWriter
from metastore.transfer.records import Record
from metastore.transfer.selection import EVERYTHING
from tests.support.servers.servers import run_command

ROLES = [Record("role", (f"r{number}",), {"create_time": number, "owner_name": None}) for number in range(3000)]


def written(path: Path) -> DumpReader:
    DumpWriter(path).write(iter(ROLES))
    return DumpReader(path)


def text_of(path: Path) -> bytes:
    with pa.OSFile(str(path), "rb") as file, pa.CompressedInputStream(file, "zstd") as stream:
        return bytes(stream.read())


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    changed = change(text_of(path))
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(changed)


def test_a_dump_is_lines_of_json(tmp_path: Path) -> None:
    source = written(tmp_path / "d")
    head, first, *_, last = text_of(source.path).splitlines()
    assert json.loads(head)["format"] == "metastore dump"
    assert json.loads(first) == {"kind": "role", "key": ["r0"], "body": {"create_time": 0, "owner_name": None}}
    assert json.loads(last)["records"] == {"role": 3000}
    assert list(source.records(EVERYTHING)) == ROLES
    assert source.check() == {"role": 3000}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.rpartition(b"\n")[0].rpartition(b"\n")[0] + b"\n",  # without its end
        lambda text: b"".join(text.splitlines(keepends=True)[:10]),
        lambda text: text.replace(b'"r17"', b'"r18"'),
        lambda text: text.replace(b'{"body":{"create_time":5,"owner_name":null},"key":["r5"],"kind":"role"}\n', b""),
        lambda text: text[:-1],
        lambda text: text.splitlines(keepends=True)[0],
        lambda text: b"",
    ],
)
def test_a_dump_that_is_not_whole_is_refused(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    source = written(tmp_path / "d")
    rewrite(source.path, change)
    with pytest.raises(InvalidInput, match="cut or changed"):
        DumpReader(source.path).check()


def test_a_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    source = written(tmp_path / "d")
    raw = source.path.read_bytes()
    source.path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InvalidInput, match=r"cut or changed"):
        DumpReader(source.path).check()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace(b"metastore dump", b"other"), "is not a dump of a metastore"),
        (lambda text: text.replace(b'"version":1', b'"version":99', 1), "has version 99 of the format, this server reads 1"),
    ],
)
def test_a_file_of_another_kind_is_refused(change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    source = written(tmp_path / "d")
    rewrite(source.path, change)
    with pytest.raises(InvalidInput, match=message):
        DumpReader(source.path).check()


def test_a_file_that_is_not_compressed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes(b"hello\n" * 100)
    with pytest.raises(InvalidInput, match="can not be read"):
        DumpReader(tmp_path / "d").check()


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    DumpWriter(tmp_path / "d").write(iter([Record("future", ("x",), {})]))
    with pytest.raises(InvalidInput, match="line 2 is of the kind 'future', which this version does not know"):
        list(DumpReader(tmp_path / "d").records(EVERYTHING))


def test_a_file_is_not_written_over_and_not_left_half(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("mine")
    with pytest.raises(InvalidInput, match="is there already"):
        DumpWriter(tmp_path / "d").begin()
    with pytest.raises(InvalidInput, match="can not be resumed"):
        DumpWriter(tmp_path / "e").begin(resume=True)

    def failing() -> object:
        yield ROLES[0]
        raise RuntimeError

    writer = DumpWriter(tmp_path / "e")
    with pytest.raises(RuntimeError):
        writer.write(failing())  # type: ignore[arg-type]
    writer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, home=home)


def test_the_commands(dumped: DumpReader, filled: str, tmp_path: Path) -> None:
    """Dump a running server, restore, compare, change something, compare again."""
    file, url = str(tmp_path / "d"), f"sqlite:///{tmp_path / 'x.db'}"
    made = run("dump", file, "--db", filled, "--json", home=tmp_path)
    assert json.loads(made.stdout)["records"]["partition"] == 13, made.stderr
    assert run("dump", file, "--db", filled, home=tmp_path).returncode == 2
    assert run("restore", file, "--db", url, home=tmp_path).returncode == 0
    again = run("restore", file, "--db", url, home=tmp_path)
    assert again.returncode == 1
    assert "has tables" in again.stderr
    same = run("verify", file, url, home=tmp_path)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "equal")
    assert run("db", "current", "--db", url, home=tmp_path).returncode == 0
    part = str(tmp_path / "part")
    assert run("dump", part, "--db", url, "--exclude", "sales.orders", "--without", "role_grant", home=tmp_path).returncode == 0
    other = run("diff", file, part, home=tmp_path)
    assert other.returncode == 1
    assert f"table hive.sales.orders: only in {file}" in other.stdout
    assert "role_grant lead.2.team: only in" in other.stdout
    found = json.loads(run("verify", file, part, "--exclude", "sales.orders", "--without", "role_grant", "--json", home=tmp_path).stdout)
    assert found["equal"] is True, found
    dry = run("import", file, "--dry-run", "--db", f"sqlite:///{tmp_path / 'none.db'}", "--each", home=tmp_path)
    assert "table hive.sales.orders" in dry.stdout.splitlines()
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "nowhere", "nowhere"), "nowhere is not there"),
        (("verify", "sqlite:////nowhere.db", "x"), "database sqlite:////nowhere.db is not there"),
        (("dump", "f", "--from", "nowhere", "--include", "a.b.c.d"), "pattern 'a.b.c.d': write database"),
        (("dump", "f", "--from", "nowhere", "--only", "cat"), "kind cat is not known"),
        (("restore", "nowhere"), "dump nowhere does not exist"),
    ],
)
def test_refusals_of_the_commands(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run(*arguments, home=tmp_path)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
