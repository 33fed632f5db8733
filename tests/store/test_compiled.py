"""Texts of statements, which the databases of one kind share."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from metastore.store.core.compiled import Compiled
from metastore.store.core.database import Database

NUMBERS = sa.table("numbers", sa.column("number"))


def test_databases_of_a_kind_share_them(tmp_path: Path) -> None:
    one, other = (Database(f"sqlite:///{tmp_path}/{name}.db") for name in ("one", "other"))
    assert one.compiled is other.compiled
    assert one.driver.ignoring(NUMBERS) is other.driver.ignoring(NUMBERS)


def test_kinds_of_databases_have_their_own(tmp_path: Path) -> None:
    locking = sa.select(NUMBERS.c.number).with_for_update()
    assert "FOR UPDATE" not in Database(f"sqlite:///{tmp_path}/m.db").compiled[locking][0]
    for url in ("postgresql://127.0.0.1/m", "mysql://127.0.0.1/m"):
        assert Database(url).compiled[locking][0].endswith("FOR UPDATE")


def test_a_statement_is_compiled_again_after_too_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compiled, "MAX_STATEMENTS", 2)
    compiled = Compiled(sqlite.dialect())
    first, *others = [sa.select(NUMBERS.c.number).where(NUMBERS.c.number == number) for number in range(4)]
    text = compiled[first]
    assert compiled[first] is text
    for other in others:
        assert compiled[other][1] != text[1]
    assert len(compiled) == 1
    assert first not in compiled
    assert compiled[first] == text
