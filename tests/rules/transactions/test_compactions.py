import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import MetaError
from metastore.rules.transactions.compactions import (
    ABORTED,
    DID_NOT_INITIATE,
    ENDED,
    FAILED,
    FOLLOWS,
    MAJOR,
    MINOR,
    PENDING,
    READY,
    SERVERS_OWN,
    STATE_TEXTS,
    SUCCEEDED,
    UNATTENDED_MS,
    Past,
    Thresholds,
    Waiting,
    due,
    gave_up,
    read_order,
    read_properties,
    surplus,
    type_letter,
    unattended,
    write_properties,
)

BY_DEFAULT = Thresholds(10, 0.1)


@pytest.mark.parametrize(
    ("deltas", "delta_size", "base_size", "bases", "only_major", "expected"),
    [
        (10, 100, 0, 0, False, None),
        (11, 100, 0, 0, False, MAJOR),
        (1, 100, 1000, 0, False, None),
        (1, 101, 1000, 0, False, MAJOR),
        (11, 100, 1000, 0, False, MINOR),
        (11, 100, 1000, 0, True, MAJOR),
        (0, 0, 1000, 1, False, MAJOR),
        (0, 0, 0, 0, False, None),
        (11, 0, 0, 0, False, MINOR),
    ],
)
def test_the_due_compaction(deltas: int, delta_size: int, base_size: int, bases: int, only_major: bool, expected: str | None) -> None:
    assert due(deltas, delta_size, base_size, bases, BY_DEFAULT, only_major=only_major) == expected


def test_a_tables_parameters_replace_thresholds() -> None:
    prefix = "compactorthreshold.hive.compactor.delta."
    assert BY_DEFAULT.of_table({}) == BY_DEFAULT
    assert BY_DEFAULT.of_table({f"{prefix}num.threshold": "3", f"{prefix}pct.threshold": "0.5"}) == Thresholds(3, 0.5)
    with pytest.raises(MetaError, match="is not a number"):
        BY_DEFAULT.of_table({f"{prefix}num.threshold": "three"})


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], False),
        ([(FAILED, 5)], False),
        ([(FAILED, 5), (FAILED, 4)], True),
        ([(SUCCEEDED, 6), (FAILED, 5), (FAILED, 4)], False),
        ([(FAILED, 5), (FAILED, 4), (SUCCEEDED, 3)], True),
        ([(FAILED, 5), (ABORTED, 4)], False),
    ],
)
def test_when_it_is_given_up(outcomes: list[tuple[str, int]], expected: bool) -> None:
    assert gave_up(outcomes, 2, 100, 50) is expected
    assert gave_up(outcomes, 2, 0, 10**9) is expected
    assert gave_up(outcomes, 2, 100, 106) is False
    assert gave_up(outcomes, 0, 100, 50) is False


def past(states: str, kind: str = MAJOR, start: int = 100) -> list[Past]:
    return [Past(number, "c", "d", "t", None, state, kind, start) for number, state in zip(range(len(states), 0, -1), states, strict=True)]


KEEP = {SUCCEEDED: 3, FAILED: 3, DID_NOT_INITIATE: 2}


def test_so_many_of_each_state_stay() -> None:
    assert surplus(past("ssss"), KEEP, 0) == [1]
    assert surplus(past("fafafa"), KEEP, 0) == [1]
    other = [each._replace(table="u", id=each.id + 100) for each in past("sss")]
    assert surplus([*past("sss"), *other], KEEP, 0) == []


def test_old_failures_go_once_they_are_made_up_for() -> None:
    assert surplus(past("fsf"), KEEP, 200) == [1]
    assert surplus(past("fsf"), KEEP, 100) == []
    minor = past("s", MINOR, 300) + [each._replace(id=0, type=MINOR) for each in past("f")] + [each._replace(id=-1) for each in past("f")]
    assert surplus(minor, KEEP, 200) == [0], "a minor one does not make up for a major one"


@given(st.dictionaries(st.text(), st.text(), max_size=4))
def test_properties_are_read_as_they_were_written(properties: dict[str, str]) -> None:
    assert read_properties(write_properties(properties)) == properties


def test_properties_are_written_as_hive_reads_them() -> None:
    assert write_properties({"location": "file:/x", "e": ""}) == "2:8:location7:file:/x1:e0:"
    assert write_properties({}) is None
    with pytest.raises(ValueError, match="invalid literal"):
        read_properties("what is this")


def test_states_and_orders() -> None:
    assert set(STATE_TEXTS) == {*PENDING, *ENDED}
    assert set(FOLLOWS) | {DID_NOT_INITIATE} == set(STATE_TEXTS)
    assert READY not in FOLLOWS[ABORTED]
    assert read_order('"CC_TABLE" DESC, `id`') == [("table", True), ("id", False)]
    assert read_order(" ") == []
    with pytest.raises(MetaError, match="use one of MINOR, MAJOR"):
        type_letter(None)


SPARK = "metastore-spark"
HOUR = UNATTENDED_MS


@pytest.mark.parametrize(
    ("version", "oldest", "taken", "expected"),
    [
        (None, 3, {}, "no worker takes compactions: 2 wait, the oldest for 3 h; set compactor_worker_threads=1, or run"),
        (None, 72, {SPARK: 2}, "no worker takes compactions: 2 wait, the oldest for 3 d;"),
        (None, 1, {}, ""),
        (None, 3, {SERVERS_OWN: 1}, ""),
        (None, 3, {None: 1}, ""),
        (
            SERVERS_OWN,
            3,
            {SERVERS_OWN: 0},
            "no worker on Spark takes the compactions that metastore-arrow put back: 2 wait,",
        ),
        (SERVERS_OWN, 3, {SERVERS_OWN: 0, SPARK: 1}, ""),
    ],
)
def test_compactions_that_no_worker_takes(version: str | None, oldest: int, taken: dict[str | None, int], expected: str) -> None:
    """Hours before now."""
    now = 1000 * HOUR
    found = unattended([Waiting(version, 2, now - oldest * HOUR)], {each: now - ago * HOUR for each, ago in taken.items()}, now)
    assert len(found) == bool(expected)
    assert expected in "".join(found)
