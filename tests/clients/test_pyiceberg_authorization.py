"""PyIceberg's users on a metastore with authorization: granted operations work, and other tables are hidden."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.types import StringType

from metastore import idl
from metastore.client import connect
from tests.service.authorization.callers import bag
from tests.support.servers.servers import serving

ROWS = pa.table({"a": [1, 2]})


@pytest.mark.on_one_database
def test_users_get_their_granted_objects(database_url: str, tmp_path: Path) -> None:
    options = {
        "db": database_url, "warehouse": f"file:{tmp_path}/warehouse", "workers": "1", "authorization": "grants", "admin_users": "root",
    }  # fmt: skip
    settings = (part for name, value in options.items() for part in ("--set", f"{name}={value}"))
    with serving(*settings, home=tmp_path / "server") as server, connect(server.uri) as root:

        def catalog(user: str) -> Catalog:
            return load_catalog(user, type="hive", uri=server.uri, ugi=f"{user}:staff", warehouse=options["warehouse"])

        root.set_ugi("root", [])
        root.create_database(idl.Database(name="lake"))
        bob, eve = catalog("bob"), catalog("eve")
        with pytest.raises(NoSuchNamespaceError):
            bob.create_table("lake.t", schema=ROWS.schema)
        root.grant_privileges(bag("CREATE", "bob", dbName="lake"))
        bob.create_table("lake.t", schema=ROWS.schema).append(ROWS)
        assert bob.list_tables("lake") == [("lake", "t")]
        assert root.get_table("lake", "t").owner == "bob"

        assert eve.list_namespaces() == [("default",)]
        for call in (eve.load_table, eve.drop_table):
            with pytest.raises(NoSuchTableError):
                call("lake.t")
        root.grant_privileges(bag("INSERT", "eve", dbName="lake", objectName="t"))
        seen = eve.load_table("lake.t")
        seen.append(ROWS)
        assert bob.load_table("lake.t").scan().to_arrow().num_rows == 4
        with (
            pytest.raises(Exception, match=r"OBJECT OWNERSHIP\] on Object \[type=TABLE_OR_VIEW, name=lake.t"),
            seen.update_schema() as update,
        ):
            update.add_column("b", StringType())
        with pytest.raises(Exception, match="DROPTABLE"):
            eve.drop_table("lake.t")
        bob.drop_table("lake.t")
        assert bob.list_tables("lake") == []
