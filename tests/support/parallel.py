"""How `pytest -n` spreads the tests over processes. Without pytest-xdist it can not be imported."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

SPARK = "tests/spark/"


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file run in one process, in their order; files come in the order of the collection.

    Those on Spark run in one process all together: Spark is slow until it is warm, and takes both cores while it works.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(SPARK) else nodeid.split("::", 1)[0]
