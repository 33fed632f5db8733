"""The thread that compares a replica with its primary goes on after any error."""

from __future__ import annotations

import threading

import pytest

from metastore.errors import MetaError
from metastore.store.core import replica
from metastore.store.core.database import Database
from metastore.store.core.replica import Replica

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.mark.parametrize("error", [MetaError("no connection"), ValueError("something new")], ids=["a known error", "an unknown one"])
def test_the_replica_is_looked_at_again_after_an_error(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    looks: list[None] = []
    again = threading.Event()

    def look(_self: Replica) -> None:
        looks.append(None)
        if len(looks) > 1:
            again.set()
        raise error

    monkeypatch.setattr(replica, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(Replica, "look", look)
    primary = Database(NOWHERE)
    watched = Replica(primary, NOWHERE, 1, 5.0)
    watched.start()
    try:
        assert again.wait(30)
        assert not watched.is_fresh
    finally:
        watched.close()
        primary.close()
