"""The bound of waits for a file system."""

from __future__ import annotations

import threading
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from metastore.errors import MetaError
from metastore.warehouse import Warehouse
from tests.support.servers.stalling import stalling

TIMEOUT = 1.0


class Prompt(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A file system that answers at once, on any machine."""

    protocol = "prompt"


def test_a_driver_that_is_loaded_slowly_is_no_file_system_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import of a driver, which takes seconds on a busy machine, does not count as a wait for the file system."""

    def slowly(_protocol: str) -> type[Any]:
        threading.Event().wait(2 * TIMEOUT)
        return Prompt

    monkeypatch.setattr(fsspec, "get_filesystem_class", slowly)
    warehouse = Warehouse("prompt://here/wh", timeout=TIMEOUT)
    assert not warehouse.exists("prompt://here/wh/t")


def test_a_driver_that_waits_for_its_file_system_is_bounded() -> None:
    with stalling() as store:
        warehouse = Warehouse("s3a://bucket/wh", options=store.s3, timeout=TIMEOUT)
        with pytest.raises(MetaError, match="warehouse_timeout"):
            warehouse.exists("s3a://bucket/wh/t")
        assert store.reached.wait(60)  # a busy machine takes more than the time to make a client of S3
