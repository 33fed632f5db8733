"""Directories are made, moved, deleted and counted on every kind of file system. Directories of others stay untouched."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest

from metastore.errors import MetaError
from metastore.warehouse import DirectorySummary, MadeDirectories, Warehouse
from tests.warehouse.conftest import put


def make_all(warehouse: Warehouse, *locations: str) -> None:
    with MadeDirectories(warehouse, None, ()) as made:
        made.make(locations)


def test_a_directory_is_made_with_its_parents_and_removed(any_warehouse: Warehouse) -> None:
    place = f"{any_warehouse.root}/db.db/t/dt=a%2Fb"
    make_all(any_warehouse, place)
    assert any_warehouse.missing(place) == []
    put(any_warehouse, f"{place}/file")
    assert any_warehouse.is_directory(place)
    assert not any_warehouse.is_empty(place)
    any_warehouse.delete(f"{any_warehouse.root}/db.db/t")
    assert not any_warehouse.exists(place)


def test_a_directory_moves_with_its_files_and_not_its_neighbours(any_warehouse: Warehouse) -> None:
    root = f"{any_warehouse.root}/db"
    put(any_warehouse, f"{root}/t/dt=1/f", b"12345")
    put(any_warehouse, f"{root}/t2/f", b"neighbour")
    any_warehouse.rename(f"{root}/t", f"{root}/other/u")
    assert any_warehouse.summarize(f"{root}/other/u") == DirectorySummary(1, 5)
    assert any_warehouse.exists(f"{root}/other/u/dt=1/f")
    assert not any_warehouse.exists(f"{root}/t")
    assert any_warehouse.exists(f"{root}/t2/f")


def test_a_move_onto_something_is_refused_and_changes_nothing(any_warehouse: Warehouse) -> None:
    root = f"{any_warehouse.root}/db"
    put(any_warehouse, f"{root}/t/f")
    put(any_warehouse, f"{root}/u/g")
    with pytest.raises(MetaError, match=r"/db/u exists already: remove it or choose another name"):
        any_warehouse.rename(f"{root}/t", f"{root}/u")
    assert any_warehouse.exists(f"{root}/t/f")
    assert any_warehouse.exists(f"{root}/u/g")
    assert not any_warehouse.exists(f"{root}/u/t")


def test_a_move_between_file_systems_is_refused(local: Warehouse) -> None:
    with pytest.raises(MetaError, match="are on different file systems: copy the data and set the location"):
        local.rename(f"{local.root}/t", "memory://m/t")


def test_deleting_a_missing_directory_is_not_an_error(any_warehouse: Warehouse) -> None:
    any_warehouse.delete(f"{any_warehouse.root}/nothing")


def test_deleting_leaves_names_that_begin_alike(any_warehouse: Warehouse) -> None:
    put(any_warehouse, f"{any_warehouse.root}/t/f")
    put(any_warehouse, f"{any_warehouse.root}/t2/f")
    any_warehouse.delete(f"{any_warehouse.root}/t/")
    assert not any_warehouse.exists(f"{any_warehouse.root}/t")
    assert any_warehouse.exists(f"{any_warehouse.root}/t2/f")


@pytest.mark.parametrize("name", ["a*", "a?", "[ab]x", "**", "*"])
def test_a_name_is_no_pattern(any_warehouse: Warehouse, name: str) -> None:
    root = any_warehouse.root
    others = [f"{root}/{other}.db/t/f" for other in ("ab", "ax", "a", "b")]
    for place in (*others, f"{root}/{name}.db/t/f", f"{root}/{name}.db/u/p=1/f"):
        put(any_warehouse, place)
    any_warehouse.rename(f"{root}/{name}.db/t", f"{root}/{name}.db/v")
    assert any_warehouse.exists(f"{root}/{name}.db/v/f")
    assert not any_warehouse.exists(f"{root}/{name}.db/t")
    any_warehouse.delete(f"{root}/{name}.db/v")
    assert not any_warehouse.exists(f"{root}/{name}.db/v")
    assert any_warehouse.summarize(f"{root}/{name}.db") == DirectorySummary(1, 4)
    any_warehouse.delete(f"{root}/{name}.db")
    assert not any_warehouse.exists(f"{root}/{name}.db")
    assert [place for place in others if not any_warehouse.exists(place)] == []


def test_all_but_the_directories_of_others_are_deleted(any_warehouse: Warehouse) -> None:
    root = any_warehouse.root
    kept = [f"{root}/t/a/b/kept/f", f"{root}/t/a/b/kept/deep/f", f"{root}/t/other/f"]
    doomed = [f"{root}/t/f", f"{root}/t/a/f", f"{root}/t/a/b/kept2/f", f"{root}/t/a/b/f", f"{root}/t/c/d/f"]
    for place in (*kept, *doomed):
        put(any_warehouse, place)
    assert any_warehouse.delete_all(any_warehouse.parts_but(f"{root}/t", [f"{root}/t/a/b/kept", f"{root}/t//other/"])) == {}
    assert [place for place in kept if not any_warehouse.exists(place)] == []
    assert [place for place in doomed if any_warehouse.exists(place)] == []
    assert not any_warehouse.exists(f"{root}/t/c")


def test_hidden_files_and_directories_are_not_counted(any_warehouse: Warehouse) -> None:
    place = f"{any_warehouse.root}/_hidden_above/t"
    for name, data in {
        "a": b"123", "p=1/b": b"45", "_SUCCESS": b"x", ".c.crc": b"x", "_tmp/d": b"x", "p=1/.hive-staging/e": b"x", "p=1/_f": b"x"
    }.items():  # fmt: skip
        put(any_warehouse, f"{place}/{name}", data)
    assert any_warehouse.summarize(place) == DirectorySummary(files=2, size=5)


def test_a_directory_that_is_not_there_is_empty_and_holds_nothing(any_warehouse: Warehouse) -> None:
    assert any_warehouse.is_empty(f"{any_warehouse.root}/nothing")
    assert any_warehouse.summarize(f"{any_warehouse.root}/nothing") == DirectorySummary(0, 0)


def test_many_directories_are_deleted_and_failures_returned(any_warehouse: Warehouse) -> None:
    many = [f"{any_warehouse.root}/t/p={number}" for number in range(40)]
    for place in many:
        put(any_warehouse, f"{place}/f")
    failed = any_warehouse.delete_all([*many[:20], any_warehouse.root, *many[20:]])
    assert list(failed) == [any_warehouse.root]
    assert not any(any_warehouse.exists(place) for place in many)


@pytest.mark.parametrize("spelling", ["{root}", "{root}/", "{root}/.", "{root}//", "file://localhost{path}", "{parent}", "/", "file:///"])
def test_roots_are_never_deleted(spelling: str, tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "wh"), str(tmp_path / "ext"))
    put(warehouse, f"{warehouse.root}/f")
    location = spelling.format(root=warehouse.root, path=tmp_path / "wh", parent=f"file:{tmp_path}")
    with pytest.raises(MetaError, match="it is never deleted"):
        warehouse.delete(location)
    with pytest.raises(MetaError, match="it is never deleted"):
        warehouse.delete(f"file:{tmp_path}/ext", purge=True)
    with pytest.raises(MetaError, match="it is never deleted"):
        warehouse.parts_but(location, [f"{warehouse.root}/kept"])
    assert warehouse.exists(f"{warehouse.root}/f")


def test_a_root_is_recognised_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "wh").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for root, other in (("link/wh", "real/wh"), ("real/wh", "link/wh")):
        warehouse = Warehouse(str(tmp_path / root))
        with pytest.raises(MetaError, match="it is never deleted"):
            warehouse.delete(str(tmp_path / other))


@pytest.mark.parametrize("location", ["s3://{bucket}", "s3a://{bucket}/", "s3://{bucket}/wh"])
def test_roots_of_buckets_are_never_deleted(location: str, s3: Warehouse, bucket: str) -> None:
    put(s3, f"s3://{bucket}/wh/f")
    with pytest.raises(MetaError, match="it is never deleted"):
        s3.delete(location.format(bucket=bucket))
    with pytest.raises(MetaError, match="it is never deleted"):
        s3.parts_but(location.format(bucket=bucket), [f"s3://{bucket}/wh/kept"])
    assert s3.exists(f"s3://{bucket}/wh/f")


def test_a_link_goes_and_its_target_stays(local: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "f").write_text("precious")
    (tmp_path / "wh" / "t").mkdir()
    (tmp_path / "wh" / "t" / "inner").symlink_to(tmp_path / "data")
    (tmp_path / "wh" / "link").symlink_to(tmp_path / "data")
    (tmp_path / "wh" / "broken").symlink_to(tmp_path / "nothing")
    for name in ("t", "link/", "broken"):
        local.delete(f"{local.root}/{name}")
    assert list((tmp_path / "wh").iterdir()) == []
    assert (tmp_path / "data" / "f").read_text() == "precious"


def test_percent_escapes_are_not_undone(local: Warehouse, tmp_path: Path) -> None:
    make_all(local, f"{local.root}/%2e%2e", f"{local.root}/a%2Fb")
    assert sorted(path.name for path in (tmp_path / "wh").iterdir()) == ["%2e%2e", "a%2Fb"]


@pytest.mark.parametrize("bad", ["file:/wh/../x", "file:/x\0y", "x", "file://otherhost/x", "nosuchscheme://h/x", "s3:///x"])
def test_a_location_that_names_no_place_is_a_meta_error_in_every_operation(bad: str, local: Warehouse) -> None:
    for operation in (
        local.exists, local.is_directory, local.is_empty, local.missing, local.make, local.delete, local.summarize
    ):  # fmt: skip
        with pytest.raises(MetaError):
            operation(bad)
    with pytest.raises(MetaError):
        local.rename(bad, f"{bad}2")
    local.remove_if_empty(bad)
    assert local.is_writable(bad), "what lies nowhere may be dropped"


def test_a_host_in_a_local_location_is_explained(local: Warehouse) -> None:
    with pytest.raises(MetaError, match="file://data/x names the host data: write file:///path, with three slashes"):
        local.exists("file://data/x")


def test_a_file_in_the_way_is_named(local: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "wh" / "t").write_text("")
    with pytest.raises(MetaError, match=r"/wh/t is not a directory or unable to create one: a file of that name is there"):
        local.missing(f"{local.root}/t/p=1")
    (tmp_path / "wh" / "u").symlink_to(tmp_path / "nothing")
    with pytest.raises(MetaError, match=r"/wh/u is not a directory"):
        local.missing(f"{local.root}/u")


def test_a_read_only_directory_is_a_meta_error(unprivileged_folder: Path) -> None:
    warehouse = Warehouse(str(unprivileged_folder / "wh"))
    with pytest.raises(MetaError, match=r"closed/t is not a directory or unable to create one: Permission denied"):
        warehouse.make(f"file:{unprivileged_folder}/t")
    with pytest.raises(MetaError, match=r"inside can not be deleted: Permission denied"):
        warehouse.delete(f"file:{unprivileged_folder}/inside")
    inside, gone = f"file:{unprivileged_folder}/inside", f"file:{unprivileged_folder}/gone"
    ((failed, error),) = warehouse.delete_all([inside, gone]).items()
    assert (failed, error.message) == (inside, f"{inside} can not be deleted: Permission denied")
    with pytest.raises(MetaError, match=r"inside can not be moved to .*: Permission denied"):
        warehouse.rename(f"file:{unprivileged_folder}/inside", f"file:{unprivileged_folder}/outside")
    assert not warehouse.is_writable(f"file:{unprivileged_folder}")
    assert (unprivileged_folder / "inside").is_dir()


def test_a_full_disk_is_a_meta_error_and_new_directories_go(local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.mkdir

    def mkdir(path: str, mode: int = 0o777) -> None:
        if path.endswith("p=2"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        real(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(MetaError, match="No space left on device"), MadeDirectories(local, None, ()) as made:
        made.make([f"{local.root}/t/p={number}" for number in range(4)])
    assert list((tmp_path / "wh").iterdir()) == []


def test_an_error_of_the_driver_becomes_a_meta_error(local: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
        protocol = "broken"

        def _fail(self, *_args: Any, **_options: Any) -> Any:
            raise RuntimeError("no credentials")

        exists = isdir = info = ls = mkdir = rm = mv = find = rmdir = _fail

    fsspec.register_implementation("broken", Broken, clobber=True)
    place = "broken://h/x"
    for operation in (local.exists, local.is_directory, local.is_empty, local.missing, local.make, local.delete, local.summarize):
        with pytest.raises(MetaError, match=r"broken://h/x .*no credentials"):
            operation(place)
    with pytest.raises(MetaError, match="can not be moved to broken://h/y: no credentials"):
        local.rename(place, "broken://h/y")
    local.remove_if_empty(place)


def test_an_unreachable_object_store_is_a_meta_error() -> None:
    options = {"s3": {
        "endpoint_url": "http://127.0.0.1:9", "key": "k", "secret": "s",
        "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1},
    }}  # fmt: skip
    warehouse = Warehouse("s3://b/wh", options=options)
    with pytest.raises(MetaError, match=r"s3://b/wh/t can not be listed"):
        warehouse.summarize("s3://b/wh/t")
    with pytest.raises(MetaError, match=r"s3://b/wh/t can not be deleted"):
        warehouse.delete("s3://b/wh/t")


def test_of_two_that_make_a_directory_one_has_made_it(local: Warehouse) -> None:
    for number in range(20):
        start, results = threading.Barrier(2), list[Any]()

        def make(place: str = f"{local.root}/{number}", start: threading.Barrier = start, results: list[bool] = results) -> None:
            start.wait()
            results.append(local.make(place))

        threads = [threading.Thread(target=make) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [False, True]


def test_an_empty_directory_made_by_another_is_not_swallowed_by_a_move(local: Warehouse, tmp_path: Path) -> None:
    """The system's rename replaces an empty directory. This package's rename must claim the name first."""
    put(local, f"{local.root}/t/f")
    (tmp_path / "wh" / "u").mkdir()
    inode = (tmp_path / "wh" / "u").stat().st_ino
    with pytest.raises(MetaError, match="exists already"):
        local.rename(f"{local.root}/t", f"{local.root}/u")
    assert (tmp_path / "wh" / "u").stat().st_ino == inode
    assert (tmp_path / "wh" / "t" / "f").exists()


def test_of_two_moves_to_one_name_one_wins_and_the_other_keeps_its_place(local: Warehouse) -> None:
    for number in range(20):
        root = f"{local.root}/{number}"
        for each in "ab":
            put(local, f"{root}/{each}/{each}")
        start, lost = threading.Barrier(2), list[Any]()

        def move(each: str, root: str = root, start: threading.Barrier = start, lost: list[str] = lost) -> None:
            start.wait()
            try:
                local.rename(f"{root}/{each}", f"{root}/c")
            except MetaError:
                lost.append(each)

        threads = [threading.Thread(target=move, args=(each,)) for each in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (loser,) = lost
        winner = "ab".replace(loser, "")
        assert local.exists(f"{root}/c/{winner}")
        assert local.exists(f"{root}/{loser}/{loser}")
        assert not local.exists(f"{root}/c/{loser}")


def test_a_failed_move_leaves_no_claim(local: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    put(local, f"{local.root}/t/f")

    def rename(old: str, new: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(MetaError, match="Input/output error"):
        local.rename(f"{local.root}/t", f"{local.root}/u")
    assert not local.exists(f"{local.root}/u")
    with pytest.raises(MetaError, match="No such file"):
        local.rename(f"{local.root}/nothing", f"{local.root}/u")
    assert not local.exists(f"{local.root}/u")


def across_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(old: str, new: str) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "rename", rename)


def test_between_devices_the_data_is_copied(local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(local, f"{local.root}/t/p=1/f", b"12345")
    (tmp_path / "wh" / "t" / "link").symlink_to("p=1")
    across_devices(monkeypatch)
    local.rename(f"{local.root}/t", f"{local.root}/u")
    assert (tmp_path / "wh" / "u" / "p=1" / "f").read_bytes() == b"12345"
    assert (tmp_path / "wh" / "u" / "link").is_symlink()
    assert not local.exists(f"{local.root}/t")


def test_a_copy_that_fails_goes_and_the_source_stays(local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(local, f"{local.root}/t/f", b"12345")
    os.mkfifo(tmp_path / "wh" / "t" / "pipe")  # a file that can not be copied
    across_devices(monkeypatch)
    with pytest.raises(MetaError, match="can not be moved"):
        local.rename(f"{local.root}/t", f"{local.root}/u")
    assert not local.exists(f"{local.root}/u")
    assert (tmp_path / "wh" / "t" / "f").read_bytes() == b"12345"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second device")
def test_a_real_second_device_works(local: Warehouse, tmp_path: Path) -> None:
    other = Path("/dev/shm") / f"metastore-test-{os.getpid()}"
    if tmp_path.stat().st_dev == other.parent.stat().st_dev:
        pytest.skip("one device")
    put(local, f"{local.root}/t/f")
    try:
        local.rename(f"{local.root}/t", f"file:{other}")
        assert (other / "f").exists()
        local.rename(f"file:{other}", f"{local.root}/t")
        assert local.exists(f"{local.root}/t/f")
    finally:
        local.delete(f"file:{other}")


def test_s3_answers_the_present_content_and_not_an_earlier_listing(s3: Warehouse, s3_options: dict[str, Any], bucket: str) -> None:
    other = fsspec.filesystem("s3", **s3_options["s3"], skip_instance_cache=True)
    place = f"s3a://{bucket}/wh/t"
    assert not s3.is_directory(place)
    assert s3.summarize(place) == DirectorySummary(0, 0)
    other.pipe(f"{bucket}/wh/t/f", b"123")
    assert s3.is_directory(place)
    assert s3.summarize(place) == DirectorySummary(1, 3)
    other.rm(f"{bucket}/wh/t/f")
    other.invalidate_cache()
    assert s3.is_empty(place)


def test_objects_that_mark_directories_are_no_files(s3: Warehouse, s3_options: dict[str, Any], bucket: str) -> None:
    import boto3

    client = boto3.client(
        "s3", endpoint_url=s3_options["s3"]["endpoint_url"], aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1"
    )
    for key in ("wh/t/", "wh/t/p=1/", "wh/t/p=2_$folder$"):
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    client.put_object(Bucket=bucket, Key="wh/t/p=1/f", Body=b"12")
    assert s3.summarize(f"s3://{bucket}/wh/t") == DirectorySummary(1, 2)


def test_a_directory_on_an_object_store_costs_no_request_to_make() -> None:
    warehouse = Warehouse("s3://b/wh", options={"s3": {"endpoint_url": "http://127.0.0.1:9", "key": "k", "secret": "s"}})
    with MadeDirectories(warehouse, None, ()) as made:
        assert made.make([f"s3://b/wh/t/p={number}" for number in range(1000)]) == [False] * 1000
    assert not warehouse.make("s3://b/wh/t")


def test_a_copy_on_an_object_store_that_fails_goes(s3: Warehouse, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        put(s3, f"s3://{bucket}/wh/t/{number}")
    files, _ = s3._at(f"s3://{bucket}/wh")
    real = files._system.copy  # type: ignore[union-attr]

    def copy(old: list[str], new: list[str], **_options: Any) -> None:
        real(old[0], new[0])
        raise OSError("connection lost")

    monkeypatch.setattr(files._system, "copy", copy)  # type: ignore[union-attr]
    with pytest.raises(MetaError, match="connection lost"):
        s3.rename(f"s3://{bucket}/wh/t", f"s3://{bucket}/wh/u")
    assert not s3.exists(f"s3://{bucket}/wh/u")
    assert s3.summarize(f"s3://{bucket}/wh/t").files == 3


def test_each_host_has_its_own_file_system(local: Warehouse) -> None:
    seen = []

    class Hosted(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
        protocol = "hosted"
        cachable = False

        @staticmethod
        def _get_kwargs_from_urls(url: str) -> dict[str, Any]:
            return {"host": url.split("/")[2]}

        def __init__(self, host: str, token: str) -> None:
            super().__init__()
            seen.append((host, token))

    fsspec.register_implementation("hosted", Hosted, clobber=True)
    warehouse = Warehouse(local.root, options={"hosted": {"token": "t"}})
    for host in ("one", "two", "one"):
        warehouse.exists(f"hosted://{host}/x")
    assert seen == [("one", "t"), ("two", "t")]


def test_options_of_s3_serve_its_other_names(s3_options: dict[str, Any], bucket: str) -> None:
    warehouse = Warehouse("/wh", options={"s3a": s3_options["s3"]})
    put(warehouse, f"s3://{bucket}/x/f")
    for scheme in ("s3", "s3a", "s3n"):
        assert warehouse.summarize(f"{scheme}://{bucket}/x").files == 1
