"""Run a test of a rule on one database, and a share of such tests on all.

A test with the marker `on_one_database` reaches SQL only through functions that other tests run on every database. It runs on one database,
which follows from its name, so that the tests of a module are spread over all databases. One in eight runs on all. `--on-all-databases`
runs each on all. In a matrix of cases some are marked: each differs from a case that runs on all databases only in a detail that is
independent of the database, such as a seed or the format of a message.
"""

from __future__ import annotations

from zlib import crc32

import pytest

SHARE = 8
"""One of so many marked tests runs on all databases."""


def left_out(items: list[pytest.Item], kinds: list[str]) -> list[pytest.Item]:
    """Return the items that do not run, since their test runs on another database alone."""
    return [item for item in items if item.get_closest_marker("on_one_database") and not _is_kept(item, kinds)]


def _is_kept(item: pytest.Item, kinds: list[str]) -> bool:
    kind = getattr(item, "callspec").params.get("database_kind") if hasattr(item, "callspec") else None  # noqa: B009  # items have none by type
    if kind not in kinds:
        return True
    number = crc32(item.nodeid.replace(kind, "").encode())
    return number % SHARE == 0 or kinds[number // SHARE % len(kinds)] == kind
