"""Soft drops: the folder of a table or partition that is dropped while it is read is deleted once its readers have ended."""

from pathlib import Path

import pytest

from metastore.errors import MetaError
from metastore.idl import CompactionRequest, SerDeInfo, StorageDescriptor, Table, TxnType
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.partitions.drop_partitions import drop_partitions
from metastore.service.catalog.tables.create_table import create_table
from metastore.service.catalog.tables.tables import drop_table
from metastore.service.compaction import compactions
from metastore.service.compaction.cleaner import clean
from tests.service.compaction.test_initiator import acid_table, get_table_of
from tests.support.acid import acid_steps as acid
from tests.support.acid.cleaning import MAJOR, shown, states
from tests.support.catalog.catalog import add_partitions, columns_of

NAME = TableName("hive", "default", "t")


def assert_it_goes_when_both_end(call: Call, folder: Path, dropping: int, reader: int) -> None:
    acid.end(call.metastore, dropping)
    assert clean(call.metastore) == 0
    assert folder.exists()
    acid.end(call.metastore, reader)
    assert clean(call.metastore) == 1
    assert not folder.exists()


def test_a_dropped_tables_folder_goes_when_its_readers_are_gone(call: Call) -> None:
    folder = Path(call.metastore.warehouse.root.removeprefix("file:")) / "t.v5"
    acid.fill(folder / "delta_0000001_0000001")
    dropping = acid.begin(call.metastore, kind=TxnType.SOFT_DELETE)
    reader = acid.begin(call.metastore)
    request = CompactionRequest(
        dbname="default", tablename="t", type=MAJOR, properties={"location": f"file:{folder}", "ifPurge": "true"}, runas="alice"
    )
    assert compactions.submit_for_cleanup(call, request, 1, dropping) is True
    assert clean(call.metastore) == 0
    assert_it_goes_when_both_end(call, folder, dropping, reader)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("later", ["", "table"])
def test_a_table_that_a_transaction_drops_without_its_data_goes_when_its_readers_are_gone(
    call: Call, partitioned: bool, later: str
) -> None:
    """Hive 4 drops in this way where readers take no locks. A later drop of the whole table does not matter."""
    name, folder = acid_table(call, keys=(("k", "string"),) if partitioned else ())
    if partitioned:
        add_partitions(call, name, [["1"]])
        folder /= "k=1"
    acid.fill(folder / "delta_0000001_0000001")
    reader = acid.begin(call.metastore)
    dropping = acid.begin(call.metastore, kind=TxnType.SOFT_DELETE)
    environment = {"txnId": str(dropping), "writeId": "1", "ifPurge": "true"}
    if partitioned:
        drop_partitions(call, name, ["k=1"], delete_data=False, if_exists=False, environment=environment)
        if later == "table":
            drop_table(call, name, delete_data=False)
    else:
        drop_table(call, name, delete_data=False, environment=environment)
        if later == "table":
            acid_table(call)
            drop_table(call, name, delete_data=False)
    (entry,) = shown(call)
    assert (entry.partitionname, entry.state) == ("k=1" if partitioned else None, "ready for cleaning")
    assert_it_goes_when_both_end(call, folder, dropping, reader)
    assert states(call) == ["succeeded"]


def test_a_table_that_is_made_again_lies_elsewhere(call: Call) -> None:
    """The new table's write ids begin again, so the old files that readers still need must not be in its folder."""
    places = []
    for _ in range(2):
        making = acid.begin(call.metastore)
        sd = StorageDescriptor(cols=columns_of(("a", "int")), inputFormat="in", outputFormat="out", serdeInfo=SerDeInfo(parameters={}))
        table = Table(
            dbName="default",
            tableName="t",
            tableType="MANAGED_TABLE",
            sd=sd,
            parameters={"transactional": "true", "transactional_properties": "insert_only", "soft_delete": "true"},
            txnId=making,
        )
        create_table(call, table)
        acid.end(call.metastore, making)
        place = get_table_of(call, NAME).sd.location
        assert place == f"{call.warehouse.root}/t.v{making:07d}"
        places.append(Path(place.removeprefix("file:")))
        acid.fill(places[-1] / "delta_0000001_0000001")
        dropping = acid.begin(call.metastore, kind=TxnType.SOFT_DELETE)
        drop_table(call, NAME, delete_data=False, environment={"txnId": str(dropping)})
        acid.end(call.metastore, dropping)
    assert [place.exists() for place in places] == [True, True]
    assert clean(call.metastore) == 2
    assert [place.exists() for place in places] == [False, False]


def test_a_drop_in_a_transaction_that_is_no_number_is_refused(call: Call) -> None:
    name, _ = acid_table(call)
    with pytest.raises(MetaError, match="txnId of the request's environment is 'x'"):
        drop_table(call, name, delete_data=False, environment={"txnId": "x"})


@pytest.mark.parametrize("where", ["at", "inside", "partition"])
def test_a_folder_in_which_something_lies_again_is_not_deleted(call: Call, where: str) -> None:
    name, folder = acid_table(call, keys=(("k", "string"),))
    add_partitions(call, name, [["1"]])
    place = {"at": folder, "inside": folder.parent, "partition": folder / "k=1"}[where]
    request = CompactionRequest(dbname="default", tablename="t", partitionname="k=1", type=MAJOR, properties={"location": f"file:{place}"})
    acid.end(call.metastore, acid.begin(call.metastore))
    compactions.submit_for_cleanup(call, request, 1, 0)
    assert clean(call.metastore) == 0
    (entry,) = shown(call)
    assert entry.errorMessage.startswith(f"file:{place} is not deleted: a table, database or partition is at file:{folder.parent}")
    assert (folder / "k=1").exists()
