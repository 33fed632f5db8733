import json

import pytest

from metastore.errors import MetaError
from metastore.warehouse import Warehouse, acid
from tests.warehouse.conftest import put


def test_a_folder_is_listed_on_every_file_system(any_warehouse: Warehouse) -> None:
    place = f"{any_warehouse.root}/t"
    assert acid.listing(any_warehouse, place) == []
    put(any_warehouse, f"{place}/000000_0", b"1234")
    put(any_warehouse, f"{place}/delta_0000001_0000001_0000/bucket_00000", b"12345678")
    put(any_warehouse, f"{place}/base_0000001/bucket_00000")
    put(any_warehouse, f"{place}/base_0000002/_metadata_acid", b'{"thisFileVersion":"0","dataFormat":"compacted"}')
    put(any_warehouse, f"{place}/base_0000003/_metadata_acid", b"no json")
    put(any_warehouse, f"{place}/base_0000004/_metadata_acid", b'["compacted"]')
    put(any_warehouse, f"{place}/base_0000005_v0000009/bucket_00000")
    assert sorted(acid.listing(any_warehouse, f"{place}/")) == [
        ("000000_0", False, False),
        ("base_0000001", True, False),
        ("base_0000002", True, True),
        ("base_0000003", True, False),
        ("base_0000004", True, False),
        ("base_0000005_v0000009", True, False),
        ("delta_0000001_0000001_0000", True, False),
    ]
    names = ["000000_0", "delta_0000001_0000001_0000", "base_0000002", "nothing"]
    assert acid.total_size(any_warehouse, place, names) == 12


def test_a_base_without_rows_is_made_on_every_file_system(any_warehouse: Warehouse) -> None:
    put(any_warehouse, f"{any_warehouse.root}/t/delta_0000001_0000001/bucket_00000")
    base = f"{any_warehouse.root}/t/base_0000002"
    for _ in range(2):
        any_warehouse.make(base)
        acid.mark_empty_base(any_warehouse, base, "truncated")
    assert any_warehouse.entries(base) == [("_metadata_acid", False)]
    assert json.loads(any_warehouse.read(f"{base}/_metadata_acid") or b"") == {"thisFileVersion": "0", "dataFormat": "truncated"}


def test_folders_of_partitions_are_found_by_their_depth(any_warehouse: Warehouse) -> None:
    place = f"{any_warehouse.root}/t"
    for name in ("k=1/l=1/f", "k=1/l=2/f", "k=2/l=1/delta_1_1/f", "_tmp/l=1/f", "k=3/.hidden/f", "k=4"):
        put(any_warehouse, f"{place}/{name}")
    assert sorted(acid.folders_below(any_warehouse, place, 2)) == [f"{place}/{name}" for name in ("k=1/l=1", "k=1/l=2", "k=2/l=1")]
    assert list(acid.folders_below(any_warehouse, place, 0)) == [place]


def test_a_place_that_can_not_be_listed_or_written_is_named(local: Warehouse) -> None:
    put(local, f"{local.root}/file")
    with pytest.raises(MetaError, match="file/x can not be written"):
        local.write(f"{local.root}/file/x", b"")
    with pytest.raises(MetaError, match="file can not be listed: Not a directory"):
        acid.listing(local, f"{local.root}/file")
