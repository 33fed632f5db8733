"""How `pytest -n` spreads the tests over processes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conftest import MAX_PROCESSES, pytest_xdist_auto_num_workers
from tests.support.servers import free_port


@pytest.mark.parametrize(
    ("markers", "alone"), [("not slow", False), ("mysql8 and not slow", False), ("", False), ("slow", True), ("mysql8 and slow", True)]
)
def test_what_takes_minutes_has_the_machine_alone(markers: str, alone: bool) -> None:
    config = cast(Any, SimpleNamespace(option=SimpleNamespace(markexpr=markers)))
    chosen = pytest_xdist_auto_num_workers(config)
    assert chosen == 0 if alone else 0 < chosen <= MAX_PROCESSES


def test_the_tests_of_a_file_run_in_one_process() -> None:
    pytest.importorskip("xdist")
    from tests.support.parallel import ByFile

    split = ByFile._split_scope
    assert split(cast(Any, None), "tests/a/test_b.py::test_c[x::y]") == "tests/a/test_b.py"


def test_a_port_of_ours_is_none_that_the_system_gives() -> None:
    assert 10_000 <= free_port() < 32_000
