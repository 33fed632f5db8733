"""The judge of histories finds each anomaly, and none in a correct history."""

from __future__ import annotations

import pytest

from tests.races.histories import Txn, judge


def read(mark: int, *unseen: int) -> tuple[int, frozenset[int]]:
    return mark, frozenset(unseen)


def ended(id_: int, at: float, outcome: str = "committed", **parts: object) -> Txn:
    return Txn(id_, asked=at, seen=at + 1, ending=at + 2, ended=at + 3, outcome=outcome, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("anomaly", "history"),
    [
        ("G1a", [ended(1, 0, "aborted", writes={"a": 1}, reads={"a": read(0)}), ended(2, 10, reads={"a": read(1)})]),
        (
            "G1b",
            [ended(1, 0, writes={"a": 1, "b": 1}, reads={"a": read(0), "b": read(0)}), ended(2, 1, reads={"a": read(1), "b": read(0)})],
        ),
        ("G1c", [ended(1, 0, writes={"a": 1}, reads={"a": read(0)}), ended(2, 0, reads={"a": read(1)})]),
        ("stale", [ended(1, 0, writes={"a": 1}, reads={"a": read(0)}), ended(2, 10, reads={"a": read(0)})]),
        ("G0", [ended(1, 0, writes={"a": 1}, reads={"a": read(0)}), ended(2, 0, writes={"a": 2}, reads={"a": read(0)})]),
        (
            "G-single",
            [
                ended(1, 0, writes={"a": 1, "b": 1}, reads={"a": read(0), "b": read(0)}),
                ended(2, 10, writes={"c": 1}, reads={"b": read(1), "c": read(0)}),
                ended(3, 2, reads={"a": read(0), "c": read(1)}),
            ],
        ),
    ],
)
def test_the_judge_finds(anomaly: str, history: list[Txn]) -> None:
    assert any(each.startswith(anomaly) for each in judge(history))


def test_the_judge_finds_nothing_in_a_good_history() -> None:
    first = ended(1, 0, writes={"a": 1}, reads={"a": read(0)})
    lost = ended(2, 1, "aborted", writes={"a": 2}, reads={"a": read(0)})
    assert judge([first, lost, ended(3, 10, writes={"a": 3}, reads={"a": read(2, 2)}), ended(4, 20, reads={"a": read(3, 2)})]) == []
