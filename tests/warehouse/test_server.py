"""A real server works with directories on S3, from several threads of a forked worker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec

from metastore.client import connect
from metastore.idl import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from tests.servers import serving


def test_tables_on_s3(s3_options: dict[str, Any], bucket: str, tmp_path: Path) -> None:
    s3 = fsspec.filesystem("s3", **s3_options["s3"], use_listings_cache=False)
    options = s3_options["s3"]
    config = tmp_path / "metastore.toml"
    config.write_text(
        f'warehouse = "s3a://{bucket}/wh"\n[filesystem_options.s3]\n' + "".join(f'{key} = "{value}"\n' for key, value in options.items())
    )
    sd = StorageDescriptor(
        cols=[FieldSchema(name="a", type="int")], inputFormat="in", outputFormat="out",
        serdeInfo=SerDeInfo(serializationLib="lib", parameters={}), parameters={},
    )  # fmt: skip
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
                client.add_partitions([
                    Partition(values=[str(part), "1"], dbName=name, tableName="t", sd=sd, parameters={}) for part in range(3)
                ])
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
