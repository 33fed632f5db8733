"""A truncation leaves on disk the directories that other objects need, or is refused."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from metastore.errors import MetaError
from metastore.service.call.context import Call
from metastore.service.catalog.partitions.partitions import get_partition
from metastore.service.catalog.tables import tables
from tests.support.catalog.catalog import (
    make_table,
)
from tests.support.catalog.shared_directories import KEYS, add_at, dropped_or_refused, place, put, table_at


@pytest.mark.parametrize("table", [False, True])
def test_a_truncation_leaves_directories_of_others_inside(call: Call, table: bool) -> None:
    name = make_table(call, "t", keys=[] if table else KEYS)
    own = put(place(call, name) if table else add_at(call, name, "1", None))
    kept = put(place(call, table_at(call, "other", own.parent / "other")))
    assert dropped_or_refused(lambda: tables.truncate_table(call, name, [] if table else None, None))
    assert kept.exists()
    assert not own.exists()


def test_a_truncation_of_all_empties_places_that_only_the_table_shares(call: Call) -> None:
    name = make_table(call, "t", keys=KEYS)
    shared = put(add_at(call, name, "1", None))
    add_at(call, name, "2", shared.parent)
    root = put(add_at(call, name, "root", place(call, name)))
    with capture_logs() as logs:
        tables.truncate_table(call, name, None, None)
    assert logs == []
    assert not shared.exists()
    assert not root.exists()


def test_a_refused_truncation_changes_nothing(call: Call) -> None:
    name = make_table(call, "t", keys=KEYS)
    shared = put(add_at(call, name, "1", None))
    add_at(call, name, "2", shared.parent)
    before = get_partition(call, name, ["1"])
    with pytest.raises(MetaError, match=r"is the directory of partition hive\.default\.t k=2 too"):
        tables.truncate_table(call, name, ["k=1"], None)
    assert get_partition(call, name, ["1"]) == before
    assert shared.exists()
