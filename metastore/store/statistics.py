"""Rows of column statistics: one for each table or partition and engine, with all its columns as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from metastore.store.database import Session


def delete_columns(session: Session, table_id: int, columns: Sequence[str], *, partitions_too: bool) -> None:
    raise NotImplementedError
