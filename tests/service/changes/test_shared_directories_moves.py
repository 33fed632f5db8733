"""A rename or an exchange does not move directories that other objects need. The places of partitions are known after every change."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from metastore.errors import MetaError
from metastore.service.call.context import Call
from metastore.service.catalog.exchange import exchange_partitions
from metastore.service.catalog.partitions.alter_partitions import alter_partitions, rename_partition
from metastore.service.catalog.partitions.partitions import get_partition, get_partition_names
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.changes.occupants import occupants
from tests.support.catalog.catalog import (
    make_table,
)
from tests.support.catalog.shared_directories import EXTERNAL, KEYS, add_at, path_of, place, put, table_at

pytestmark = pytest.mark.on_one_database


@pytest.mark.parametrize("where", ["at", "inside"])
def test_a_rename_does_not_move_directories_of_others(call: Call, where: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    own = put(add_at(call, name, "1", None))
    shared = path_of(place(call, name)) if where == "at" else path_of(place(call, name)) / "x"
    other = table_at(call, "other", f"file://{shared}", parameters=EXTERNAL, tableType="EXTERNAL_TABLE")
    kept = put(shared)
    new = deepcopy(tables.get_table(call, name))
    new.tableName = "renamed"
    with capture_logs() as logs:
        alter_table(call, name, new)
    assert any("renamed table stays" in entry["event"] and entry["kept"] == ["table hive.default.other"] for entry in logs)
    assert kept.exists()
    renamed = name._replace(table="renamed")
    assert path_of(get_partition(call, renamed, ["1"]).sd.location) == own.parent
    assert own.exists()
    assert path_of(place(call, other)) == shared


@pytest.mark.parametrize("where", ["at", "inside"])
def test_a_rename_of_a_partition_does_not_move_directories_of_others(call: Call, where: str) -> None:
    name = make_table(call, "t", keys=KEYS)
    own = put(add_at(call, name, "1", None))
    add_at(call, name, "2", f"file://{own.parent}" if where == "at" else own.parent / "x")
    new = deepcopy(get_partition(call, name, ["1"]))
    new.values = ["3"]
    with capture_logs() as logs:
        rename_partition(call, name, ["1"], new)
    assert any("renamed partition stays" in entry["event"] for entry in logs)
    assert path_of(get_partition(call, name, ["3"]).sd.location) == own.parent
    assert own.exists()


def test_an_exchange_does_not_move_directories_of_others(call: Call) -> None:
    source, target = (make_table(call, table, keys=KEYS) for table in ("source", "target"))
    kept = put(add_at(call, source, "1", None))
    add_at(call, source, "2", f"file://{kept.parent}")
    with pytest.raises(MetaError, match=r"is also the location of partition hive\.default\.source k=2"):
        exchange_partitions(call, {"k": "1"}, source, target)
    assert kept.exists()
    assert get_partition_names(call, source) == ["k=1", "k=2"]


def test_the_place_of_a_partition_is_known_after_every_change(call: Call, tmp_path: Path) -> None:
    """The occupants of a directory are looked up after each kind of change that puts a partition there."""
    name = make_table(call, "t", keys=KEYS)
    lake = tmp_path / "lake"

    def found(folder: Path) -> set[str]:
        return {each.label for each in call.database.read(lambda session: occupants(session, [str(folder)]))}

    add_at(call, name, "1", None)
    base = path_of(place(call, name))
    assert found(base / "k=1") == {"partition hive.default.t k=1"}
    moved = deepcopy(get_partition(call, name, ["1"]))
    moved.sd.location = f"file://{lake}/1"
    alter_partitions(call, name, [moved])
    assert found(lake) == {"partition hive.default.t k=1"}
    assert found(base / "k=1") == set()
    renamed = deepcopy(moved)
    renamed.values = ["2"]
    rename_partition(call, name, ["1"], renamed)
    assert found(lake / "1") == {"partition hive.default.t k=2"}
    moved = deepcopy(get_partition(call, name, ["2"]))
    moved.sd.location = f"{base}/k=2"
    alter_partitions(call, name, [moved])
    assert found(lake) == set()
    assert found(base / "k=2") == {"partition hive.default.t k=2"}
    add_at(call, name, "3", base / "odd")
    table = deepcopy(tables.get_table(call, name))
    table.sd.location = str(lake / "table")
    alter_table(call, name, table)
    assert found(base) == {"partition hive.default.t k=2", "partition hive.default.t k=3"}
    assert found(base / "k=2") == {"partition hive.default.t k=2"}
    assert found(lake) == {"table hive.default.t"}
    other = make_table(call, "u", keys=KEYS)
    add_at(call, other, "4", None)
    add_at(call, other, "5", path_of(place(call, other)) / "odd")
    table = deepcopy(tables.get_table(call, other))
    table.tableName = "v"
    alter_table(call, other, table)
    assert found(base.parent / "v" / "k=4") == {"partition hive.default.v k=4"}
    assert found(base.parent / "v" / "odd") == {"partition hive.default.v k=5"}
    assert found(base.parent / "u") == set()
    exchange_partitions(call, {"k": "4"}, other._replace(table="v"), make_table(call, "w", keys=KEYS))
    assert found(base.parent / "w" / "k=4") == {"partition hive.default.w k=4"}
