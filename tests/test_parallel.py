"""How `pytest -n` spreads the tests over processes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conftest import MAX_PROCESSES, pytest_xdist_auto_num_workers
from tests.support.servers.servers import free_port


@pytest.mark.parametrize(
    ("markers", "alone"), [("not slow", False), ("mysql8 and not slow", False), ("", False), ("slow", True), ("mysql8 and slow", True)]
)
def test_tests_that_take_minutes_have_the_machine_alone(markers: str, alone: bool) -> None:
    config = cast(Any, SimpleNamespace(option=SimpleNamespace(markexpr=markers)))
    chosen = pytest_xdist_auto_num_workers(config)
    assert chosen == 0 if alone else 0 < chosen <= MAX_PROCESSES


def test_the_tests_of_a_file_run_in_one_process() -> None:
    pytest.importorskip("xdist")
    from tests.support.servers.parallel import ByFile

    split = ByFile._split_scope
    assert split(cast(Any, None), "tests/a/test_b.py::test_c[x::y]") == "tests/a/test_b.py"


class Process:
    """A process of `-n` as far as the scheduler knows it: notes the tests that it is sent."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id=id(self))

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent.extend(indices)

    def shutdown(self) -> None:
        self.shutting_down = True


def test_two_processes_take_the_files_on_spark_first() -> None:
    pytest.importorskip("xdist")
    from tests.support.servers.parallel import ByFile

    files = [*(f"tests/spark/test_{name}.py" for name in "abcde"), "tests/acid/test_f.py", "tests/wire/test_g.py", "tests/wire/test_h.py"]
    config = SimpleNamespace(option=SimpleNamespace(), getvalue=lambda name: ["3*popen"])
    scheduler = cast(Any, ByFile(cast(Any, config), None))
    processes = [Process() for _ in range(3)]
    for process in processes:
        scheduler.add_node(process)
        scheduler.add_node_collection(process, [f"{file}::test" for file in files])
    scheduler.schedule()
    assert [process.sent for process in processes] == [[0, 2], [1, 3], [5, 6]]
    for index in (5, 6):
        scheduler.mark_test_complete(processes[2], index)
    assert processes[2].sent == [5, 6, 7, 4]


def test_a_port_of_ours_is_none_that_the_system_gives() -> None:
    assert 10_000 <= free_port() < 32_000
