import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from metastore.rules.transactions.acid_directories import (
    CONVERTED,
    Base,
    Delta,
    Extent,
    FolderEntry,
    FolderState,
    NotEnoughHistory,
    SeenWriteIds,
    Transactions,
    base_name,
    decide,
    delta_name,
    parse,
    staging_name,
    staging_of,
)


def ids(high: int, opened: tuple[int, ...] = (), aborted: tuple[int, ...] = ()) -> SeenWriteIds:
    return SeenWriteIds(high, frozenset(opened), frozenset(aborted), "db.t")


def test_staging_folders_are_no_data_and_name_their_transaction() -> None:
    entries = [FolderEntry(staging_name(number, "0_insert")) for number in (7, 71, 8)]
    assert staging_of([7, 8], [*entries, FolderEntry("delta_0000007_0000007_0000"), FolderEntry(".staging_txn_7")]) == [
        entries[0].name,
        entries[2].name,
    ]
    assert decide(entries, ids(9)) == FolderState()


def of(names: str, write_ids: SeenWriteIds, transactions: Transactions = Transactions(), **options: bool) -> FolderState:
    return decide([FolderEntry(name) for name in names.split()], write_ids, transactions, **options)


def used(state: FolderState) -> str:
    return " ".join(([state.base.name] if state.base else []) + [delta.name for delta in state.deltas])


def test_names_are_read_and_written() -> None:
    assert parse("base_0000005") == Base("base_0000005", 5, 0, False)
    assert parse("base_0000005", compacted=True) == Base("base_0000005", 5, 0, True)
    assert parse("base_0000005_v0000012") == Base("base_0000005_v0000012", 5, 12, True)
    assert parse(f"base_{CONVERTED}") == Base(f"base_{CONVERTED}", CONVERTED, 0, False)
    assert parse("delta_0000001_0000002") == Delta("delta_0000001_0000002", 1, 2, -1, False, 0)
    assert parse("delta_0000001_0000001_0003") == Delta("delta_0000001_0000001_0003", 1, 1, 3, False, 0)
    assert parse("delete_delta_0000001_0000009_v0000020") == Delta("delete_delta_0000001_0000009_v0000020", 1, 9, -1, True, 20)
    for name in (base_name(5), base_name(5, 12), delta_name(1, 2), delta_name(1, 1, 3), delta_name(1, 9, is_delete=True, visibility=20)):
        parsed = parse(name)
        assert parsed is not None
        assert parsed.name == name
    for name in ("base_", "base_x", "delta_1", "delta_1_2_3_4", "delta_1_2_v", "000000_0", "p=delta_1_1", "delta_1_1.tmp", "base_1_v2_v3"):
        assert parse(name) is None


def test_a_list_of_write_ids_shows_some() -> None:
    found = ids(9, (4, 7), (2, 3))
    assert found.lowest_open == 4
    assert [number for number in range(1, 12) if found.is_valid(number)] == [1, 5, 6, 8, 9]
    assert found.is_valid_base(3)
    assert not found.is_valid_base(4)


def test_ranges_are_seen_wholly_in_part_or_not() -> None:
    found = ids(9, (7,), (2, 3))
    assert found.valid_range(4, 6) is Extent.ALL
    assert found.valid_range(1, 3) is Extent.SOME
    assert found.valid_range(2, 3) is Extent.NONE
    assert found.valid_range(8, 12) is Extent.SOME
    assert found.valid_range(10, 12) is Extent.NONE
    assert found.aborted_range(2, 3) is Extent.ALL
    assert found.aborted_range(1, 3) is Extent.SOME
    assert found.aborted_range(4, 9) is Extent.NONE
    compactor = found.for_compaction()
    assert (compactor.high_watermark, compactor.aborted) == (6, {2, 3})
    assert compactor.valid_range(1, 6) is Extent.ALL
    assert compactor.valid_range(5, 7) is Extent.NONE


@pytest.mark.parametrize(
    ("names", "snapshot", "expected", "obsolete"),
    [
        ("delta_1_1 delta_2_2", ids(2), "delta_1_1 delta_2_2", ""),
        ("delta_1_1 delta_2_2", ids(1), "delta_1_1", ""),
        ("delta_1_1 delta_2_2 delta_3_3", ids(3, (2,)), "delta_1_1 delta_3_3", ""),
        ("base_2_v7 delta_1_1 delta_2_2 delta_3_3", ids(3), "base_2_v7 delta_3_3", "delta_1_1 delta_2_2"),
        ("delta_5_20 delta_5_10 delta_11_20 delta_51_60", ids(100), "delta_5_20 delta_51_60", "delta_5_10 delta_11_20"),
        ("delta_1_3_v9 delta_1_1 delta_2_2_0 delta_2_2_1 delta_3_3", ids(3), "delta_1_3_v9", "delta_1_1 delta_2_2_0 delta_2_2_1 delta_3_3"),
        ("delta_2_2_0 delta_2_2_1 delete_delta_2_2_0", ids(2), "delete_delta_2_2_0 delta_2_2_0 delta_2_2_1", ""),
        ("delta_1_3_v9 delete_delta_1_3_v9 delete_delta_2_2", ids(3), "delete_delta_1_3_v9 delta_1_3_v9", "delete_delta_2_2"),
        (
            "delta_1_3_v8 delete_delta_1_3_v8 delta_1_3_v9 delete_delta_1_3_v9",
            ids(3),
            "delete_delta_1_3_v9 delta_1_3_v9",
            "delete_delta_1_3_v8 delta_1_3_v8",
        ),
        ("base_2 base_5 delta_3_3 delta_6_6", ids(6), "base_5 delta_6_6", "base_2 delta_3_3"),
        ("base_2 base_5 delta_3_3", ids(6, (5,)), "base_2 delta_3_3", ""),
        ("base_5 base_5_v9", ids(5), "base_5_v9", "base_5"),
        ("base_5_v8 base_5_v9", ids(5), "base_5_v9", "base_5_v8"),
        (f"base_{CONVERTED} delta_1_1", ids(1), f"base_{CONVERTED} delta_1_1", ""),
    ],
)
def test_a_snapshot_uses_the_widest_directories(names: str, snapshot: SeenWriteIds, expected: str, obsolete: str) -> None:
    for shuffled in (names.split(), names.split()[::-1]):
        state = of(" ".join(shuffled), snapshot)
        assert used(state) == expected
        assert sorted(state.obsolete) == sorted(obsolete.split())


def test_original_files_count_until_there_is_a_base() -> None:
    entries = [
        FolderEntry("000001_0", is_directory=False),
        FolderEntry("000000_0", is_directory=False),
        FolderEntry("sub"),
        FolderEntry("_tmp"),
        FolderEntry(".hive"),
        FolderEntry("delta_1_1"),
    ]
    state = decide(entries, ids(1))
    assert (used(state), state.originals, state.obsolete) == ("delta_1_1", ["000000_0", "000001_0", "sub"], [])
    state = decide([*entries, FolderEntry("base_1_v3")], ids(1))
    assert (used(state), state.originals) == ("base_1_v3", [])
    assert sorted(state.obsolete) == ["000000_0", "000001_0", "delta_1_1", "sub"]


def test_the_notes_of_a_statement_under_way_are_nobodys_and_those_of_an_aborted_one_go() -> None:
    names = "base_1 -tmp.delta_2_2_0 -tmp.delete_delta_3_3_0 -tmp.delta_4_4_0 -tmp.base_4 -tmp.x delta_2_2_0"
    state = of(names, ids(4, (4,), (3,)))
    assert (used(state), state.originals, state.obsolete, state.aborted) == (
        "base_1 delta_2_2_0",
        [],
        [],
        ["-tmp.delete_delta_3_3_0"],
    )
    assert of("-tmp.delta_1_1_0", ids(1)) == FolderState()


def test_a_file_with_the_name_of_a_directory_is_an_original() -> None:
    assert decide([FolderEntry("delta_1_1", is_directory=False)], ids(1)).originals == ["delta_1_1"]


def test_aborted_directories_are_listed() -> None:
    state = of("delta_1_1 delta_2_3 delta_4_5 base_6 delta_7_7_v30 base_7_v31", ids(7, (), (2, 3, 5, 6)), Transactions(40, {31}, {30}))
    assert used(state) == "delta_1_1 delta_4_5"
    assert sorted(state.aborted) == ["base_6", "delta_2_3", "delta_7_7_v30"]
    assert state.aborted_write_ids == {2, 3, 6}
    assert [delta.name for delta in state.partly_aborted] == ["delta_4_5"]
    assert state.obsolete == []


def test_a_compactors_directory_counts_once_its_transaction_has_committed() -> None:
    assert used(of("base_2_v9 delta_1_1 delta_2_2", ids(2), Transactions(8))) == "delta_1_1 delta_2_2"
    assert used(of("base_2_v9 delta_1_1 delta_2_2", ids(2), Transactions(9))) == "base_2_v9"


def test_a_snapshot_that_is_too_old_for_the_base_is_refused() -> None:
    with pytest.raises(NotEnoughHistory, match=r"db\.t: a snapshot up to write id 5, lowest open write id 2, can not read base_4_v9"):
        of("base_4_v9 delta_5_5", ids(5, (2,)))
    assert used(of("base_4_v9 delta_5_5", ids(5, (2,)), strict=False)) == "delta_5_5"
    assert used(of("base_4 delta_5_5", ids(5, (4,)))) == "delta_5_5"
    with pytest.raises(NotEnoughHistory):
        decide([FolderEntry("base_4", compacted=True)], ids(5, (2,)))


class Histories(RuleBasedStateMachine):
    """A table as writers, compactors and a cleaner leave it; each snapshot must read every write that it sees once, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, frozenset[int]] = {}
        self.state: dict[int, str] = {}
        self.transaction = 100
        self.committed_compactions: list[int] = []
        self.snapshots: list[tuple[SeenWriteIds, Transactions]] = []

    def now(self) -> tuple[SeenWriteIds, Transactions]:
        opened = frozenset(number for number, state in self.state.items() if state == "open")
        aborted = frozenset(number for number, state in self.state.items() if state == "aborted")
        return ids(len(self.state), tuple(opened), tuple(aborted)), Transactions(self.transaction)

    @rule(statements=st.integers(1, 3))
    def write(self, statements: int) -> None:
        number = len(self.state) + 1
        self.state[number] = "open"
        for statement in range(statements):
            self.rows[delta_name(number, number, statement)] = frozenset({number * 10 + statement})

    @rule(data=st.data(), outcome=st.sampled_from(["committed", "committed", "aborted"]))
    def finish(self, data: st.DataObject, outcome: str) -> None:
        opened = [number for number, state in self.state.items() if state == "open"]
        if not opened:
            return
        self.state[data.draw(st.sampled_from(opened))] = outcome

    @rule()
    def start_reading(self) -> None:
        self.snapshots.append(self.now())

    @rule(data=st.data())
    def end_reading(self, data: st.DataObject) -> None:
        if not self.snapshots:
            return
        self.snapshots.pop(data.draw(st.integers(0, len(self.snapshots) - 1)))

    @rule(major=st.booleans())
    def compact(self, major: bool) -> None:
        write_ids, transactions = self.now()
        view = write_ids.for_compaction()
        state = self.decided(view, transactions)
        if not state.deltas:
            return
        seen = [self.rows[delta.name] for delta in state.deltas]
        if major and state.base is not None:
            seen.append(self.rows[state.base.name])
        rows = frozenset(row for each in seen for row in each if self.state[row // 10] == "committed")
        self.transaction += 1
        low, high = min(delta.low for delta in state.deltas), max(delta.high for delta in state.deltas)
        made = base_name(high, self.transaction) if major else delta_name(low, high, visibility=self.transaction)
        self.rows[made] = rows

    @rule()
    def clean(self) -> None:
        """Clean as the cleaner does, if no reader is older than the last compaction."""
        write_ids, _ = self.now()
        oldest = min((transactions.high_watermark for _, transactions in self.snapshots), default=self.transaction)
        if oldest != self.transaction:
            return
        newest = [parsed for name in self.rows if (parsed := parse(name)) and parsed.visibility == self.transaction]
        if not newest:
            return
        high = newest[0].write_id if isinstance(newest[0], Base) else newest[0].high
        state = self.decided(ids(high, (), tuple(write_ids.aborted)), Transactions(oldest), strict=False)
        for name in state.obsolete + state.aborted:
            del self.rows[name]

    def decided(self, write_ids: SeenWriteIds, transactions: Transactions, **options: bool) -> FolderState:
        return decide([FolderEntry(name) for name in self.rows], write_ids, transactions, **options)

    @invariant()
    def every_snapshot_reads_what_it_sees(self) -> None:
        for write_ids, transactions in [*self.snapshots, self.now()]:
            state = self.decided(write_ids, transactions)
            names = ([state.base.name] if state.base else []) + [delta.name for delta in state.deltas]
            rows = [row for name in names for row in self.rows[name] if write_ids.is_valid(row // 10)]
            seen = {number for number in self.state if write_ids.is_valid(number)}
            assert len(rows) == len(set(rows)), "a row is read twice"
            assert {row // 10 for row in rows} == seen
            assert set(state.obsolete).isdisjoint(names)


Histories.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
TestHistories = Histories.TestCase
