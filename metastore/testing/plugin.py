"""Fixtures that pytest finds by itself where the package is installed; runs that do not use them pay nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from metastore.testing import RunningServer, serving


@pytest.fixture(scope="session")
def metastore_settings() -> dict[str, object]:
    """Settings of `metastore_server` by name; override this fixture to change them."""
    return {"workers": 1}


@pytest.fixture(scope="session")
def metastore_server(metastore_settings: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A running server for all tests of a session."""
    with serving(tmp_path_factory.mktemp("metastore"), **metastore_settings) as started:
        yield started
