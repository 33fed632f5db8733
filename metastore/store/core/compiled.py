"""Compile constructs of SQLAlchemy Core once for a kind of database. Never runs a statement."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import ClauseElement

from metastore.store.core.kinds import kind_of


class Compiled(dict[ClauseElement, tuple[str, dict[str, Any], int]]):
    """Texts of constructs for one kind of database, each with the literals that it holds and its kind (see `store.core.kinds`).

    A construct is compiled at its first use. Safe for threads: two at the same time compile the same text.
    """

    MAX_STATEMENTS = 5000

    def __init__(self, dialect: sa.Dialect) -> None:
        super().__init__()
        self._dialect = dialect

    def __missing__(self, clause: ClauseElement) -> tuple[str, dict[str, Any], int]:
        compiler: Any = clause.compile(dialect=self._dialect)
        literals = {key: value for key, value in compiler.construct_params(_check=False).items() if value is not None}
        text = str(compiler)
        found = (text, literals, kind_of(text))
        if len(self) > self.MAX_STATEMENTS:
            self.clear()
        self[clause] = found
        return found


_COMPILED: dict[str, Compiled] = {}


def compiled_for(dialect: sa.Dialect) -> Compiled:
    """Return the texts for a dialect, which all databases of its kind in this process share."""
    return _COMPILED.setdefault(dialect.name, Compiled(dialect))
