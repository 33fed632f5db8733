import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import MetaError
from metastore.idl import GetOpenTxnsResponse, TableValidWriteIds
from metastore.rules.transactions.snapshots import (
    NEVER,
    Snapshot,
    TableSnapshots,
    aborted_bits,
    aborted_of,
    format_table,
    format_transactions,
    of_reply,
    of_table_reply,
    parse_table,
    parse_transactions,
    parse_write_ids,
    snapshot,
)
from tests.support.acid.snapshots import format_write_ids

IDS = st.lists(st.integers(1, 60), unique=True)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    ids = draw(IDS)
    split = draw(st.integers(0, len(ids)))
    return snapshot(draw(st.integers(0, 60)), ids[:split], ids[split:])


def test_the_texts_are_hive_s() -> None:
    seen = snapshot(10, [3, 5, 6, 7], [4, 9, 10])
    assert format_transactions(seen) == "10:3:3,5-7:4,9-10"
    assert format_transactions(seen, runs=False) == "10:3:3,5,6,7:4,9,10"
    assert format_table("db.t", seen) == "db.t:10:3:3,5,6,7:4,9,10"
    assert format_write_ids(TableSnapshots(8, {"db.t": seen, "db.u": Snapshot(0)})) == f"8$db.t:10:3:3,5,6,7:4,9,10$db.u:0:{NEVER}::"
    assert parse_transactions("7") == Snapshot(7)
    assert parse_transactions("7:5") == snapshot(7, [], [], 5)
    for text in ("", None):
        assert parse_transactions(text).is_valid(NEVER)


@given(snapshots(), st.booleans())
def test_texts_are_read_as_they_are_printed(seen: Snapshot, runs: bool) -> None:
    assert parse_transactions(format_transactions(seen, runs=runs)) == seen
    assert parse_table(format_table("db.t", seen)) == ("db.t", seen)
    all_of = TableSnapshots(9, {"db.t": seen, "db.u": snapshot(3, [1], [])})
    assert parse_write_ids(format_write_ids(all_of)) == all_of


@pytest.mark.parametrize("text", ["x", "1:y", "1:2:z", "1:2:3:4-", "1:2:1-99999999999:"])
def test_a_text_that_is_not_a_snapshot_is_refused(text: str) -> None:
    with pytest.raises(MetaError, match="snapshot"):
        parse_transactions(text)
    with pytest.raises(MetaError, match="snapshot"):
        parse_table(f"db.t:{text}")


def test_a_text_that_is_not_a_snapshot_of_tables_is_refused() -> None:
    for text in ("", "x$db.t:1:2::", "7$db.t"):
        with pytest.raises(MetaError, match="snapshot"):
            parse_write_ids(text)


@given(snapshots(), st.integers(1, 70))
def test_an_id_is_valid_below_the_mark_unless_it_is_an_exception(seen: Snapshot, id_: int) -> None:
    assert seen.is_valid(id_) == (id_ <= seen.mark and id_ not in seen.exceptions)


@given(IDS, st.data())
def test_bits_are_java_s_bit_set(ids: list[int], data: st.DataObject) -> None:
    ids = sorted(ids)
    aborted = frozenset(data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else [])
    bits = aborted_bits(ids, aborted)
    assert aborted_of(ids, bits) == aborted
    assert int.from_bytes(bits, "little") == sum(1 << place for place, id_ in enumerate(ids) if id_ in aborted)
    assert not bits.endswith(b"\0")


def test_a_transaction_sees_nothing_above_itself() -> None:
    reply = GetOpenTxnsResponse(txn_high_water_mark=10, open_txns=[2, 4, 6, 8], min_open_txn=2, abortedBits=b"\x02")
    seen = of_reply(reply, current=6)
    assert (seen.mark, list(seen.exceptions), set(seen.aborted), seen.min_open) == (6, [2, 4], {4}, 2)
    seen = of_reply(reply)
    assert (seen.mark, list(seen.exceptions), set(seen.aborted)) == (10, [2, 4, 6, 8], {4})
    table = TableValidWriteIds(fullTableName="db.t", writeIdHighWaterMark=7, invalidWriteIds=[3, 5], abortedBits=b"\x01")
    found = of_table_reply(table)
    assert (found.mark, list(found.exceptions), set(found.aborted), found.min_open) == (7, [3, 5], {3}, 5)
