"""A real server works with directories on S3, from several threads of a forked worker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any

import fsspec

from metastore.client import connect
from metastore.idl import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from tests.support.servers.servers import serving

SD = StorageDescriptor(
    cols=[FieldSchema(name="a", type="int")], inputFormat="in", outputFormat="out",
    serdeInfo=SerDeInfo(serializationLib="lib", parameters={}), parameters={},
)  # fmt: skip


def configured(options: dict[str, Any], bucket: str, folder: Path) -> Path:
    """Write the settings of a server whose warehouse is a bucket; return the file."""
    config = folder / "metastore.toml"
    config.write_text(
        f'warehouse = "s3a://{bucket}/wh"\n[filesystem_options.s3]\n' + "".join(f'{key} = "{value}"\n' for key, value in options.items())
    )
    return config


def test_tables_on_s3(s3_options: dict[str, Any], bucket: str, tmp_path: Path) -> None:
    s3 = fsspec.filesystem("s3", **s3_options["s3"], use_listings_cache=False)
    config, sd = configured(s3_options["s3"], bucket, tmp_path), SD
    keys = [FieldSchema(name="p", type="string"), FieldSchema(name="q", type="string")]
    with serving("--workers", "1", "--config", str(config), home=tmp_path / "home") as server:

        def work(number: int) -> None:
            name = f"d{number}"
            with connect(server.uri) as client:
                client.create_database(Database(name=name))
                client.create_table(Table(dbName=name, tableName="t", sd=sd, partitionKeys=keys, parameters={}, tableType="MANAGED_TABLE"))
                assert client.get_table(name, "t").sd.location == f"s3a://{bucket}/wh/{name}.db/t"
                for part in range(3):
                    s3.pipe(f"{bucket}/wh/{name}.db/t/p={part}/q=1/f", b"12345")
                client.add_partitions(
                    [Partition(values=[str(part), "1"], dbName=name, tableName="t", sd=sd, parameters={}) for part in range(3)]
                )
                found = client.get_partition(name, "t", ["0", "1"])
                assert found.parameters["totalSize"] == "5"
                found.values = ["9", "1"]
                client.rename_partition(name, "t", ["0", "1"], found)
                assert client.get_partition(name, "t", ["9", "1"]).sd.location == f"s3a://{bucket}/wh/{name}.db/t/p=9/q=1"
                client.drop_partition(name, "t", ["1", "1"], True)
                objects = {path.partition("/t/")[2] for path in s3.find(f"{bucket}/wh/{name}.db")}
                assert objects == {"p=9/q=1/f", "p=2/q=1/f"}
                client.drop_table(name, "t", True)
                client.drop_database(name, True, False)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    assert s3.find(f"{bucket}/wh") == []


def test_the_three_schemes_of_s3_name_one_place(s3_options: dict[str, Any], bucket: str, tmp_path: Path) -> None:
    s3 = fsspec.filesystem("s3", **s3_options["s3"], use_listings_cache=False)
    config = configured(s3_options["s3"], bucket, tmp_path)

    def objects() -> set[str]:
        return {path.removeprefix(f"{bucket}/wh/d.db/") for path in s3.find(f"{bucket}/wh/d.db")}

    with serving("--workers", "1", "--config", str(config), home=tmp_path / "home") as server, connect(server.uri) as client:
        client.create_database(Database(name="d"))
        keys = [FieldSchema(name="k", type="string")]
        client.create_table(Table(dbName="d", tableName="t", sd=SD, partitionKeys=keys, parameters={}, tableType="MANAGED_TABLE"))
        for value, location in (("1", None), ("2", "s3://{}/k=2"), ("3", "s3n://{}//K=3"), ("4", "s3n://{}/k=1/")):
            sd = copy(SD)
            sd.location = location and location.format(f"{bucket}/wh/d.db/t")  # type: ignore[assignment]
            client.add_partition(Partition(values=[value], dbName="d", tableName="t", sd=sd, parameters={}))
        for folder in ("k=1", "k=2", "K=3"):
            s3.pipe(f"{bucket}/wh/d.db/t/{folder}/f", b"1")
        renamed = client.get_table("d", "t")
        renamed.tableName = "u"
        client.alter_table("d", "t", renamed)
        assert objects() == {"u/k=1/f", "u/k=2/f", "u/K=3/f"}
        places = {each.values[0]: each.sd.location for each in client.get_partitions("d", "u", -1)}
        root = f"s3a://{bucket}/wh/d.db/u"
        assert places == {"1": f"{root}/k=1", "2": f"{root}/k=2", "3": f"{root}/K=3", "4": f"{root}/k=1"}
        client.drop_partition("d", "u", ["4"], True)
        assert objects() == {"u/k=1/f", "u/k=2/f", "u/K=3/f"}
        client.drop_partition("d", "u", ["1"], True)
        assert objects() == {"u/k=2/f", "u/K=3/f"}
        third = client.get_partition("d", "u", ["3"])
        third.values = ["9"]
        client.rename_partition("d", "u", ["3"], third)
        assert objects() == {"u/k=2/f", "u/k=9/f"}
