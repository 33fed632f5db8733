"""The distribution of tests over the processes of `pytest -n`. This module can not be imported without pytest-xdist."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

SPARK = "tests/spark/"
SESSIONS = 2
"""Processes with a session of Spark: each has a gigabyte, and takes twenty seconds of a core until it is warm."""


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file run in one process, in their order; files are taken in the order of the collection.

    Two processes take the files on Spark before all others, since these take longest. Further processes take such a file only where no
    other is left.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::", 1)[0]

    def _assign_work_unit(self, node: Any) -> None:
        on_spark = node in self.nodes[:SESSIONS]
        chosen = next((file for file in self.workqueue if file.startswith(SPARK) is on_spark), next(iter(self.workqueue)))
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)
