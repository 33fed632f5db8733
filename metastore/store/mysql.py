"""Cursors on MariaDB and MySQL that send a statement whose result nobody needs together with the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pymysql.cursors import Cursor as PlainCursor

TOGETHER = 500_000
"""Characters of statements that go together: the server takes no packet above its max_allowed_packet, by default 16 MiB."""


class Cursor(PlainCursor):
    """Runs statements with named parameters (`%(name)s`). The connection needs the flag MULTI_STATEMENTS."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._waiting: list[str] = []

    def execute(self, query: str, args: Mapping[str, Any] | None = None) -> int:  # type: ignore[override]  # no positional parameters
        """Run a statement, after what waits; return how many rows it found or changed. pymysql.Error."""
        if not self._waiting:
            return super().execute(query, args)
        self.later(query, args)
        texts, self._waiting = self._waiting, []
        if sum(map(len, texts)) > TOGETHER:
            return [super(Cursor, self).execute(text) for text in texts][-1]
        super().execute(";".join(texts))
        while self.nextset():
            pass
        return self.rowcount

    def executemany(self, query: str, args: Iterable[Mapping[str, Any]]) -> int | None:  # type: ignore[override]  # see above
        """Run a statement for each set of parameters, after what waits."""
        self.flush()
        return super().executemany(query, list(args))

    def later(self, query: str, params: Mapping[str, Any] | None = None) -> None:
        """Run a statement together with the next one."""
        self._waiting.append(self.mogrify(query, params))

    def forget(self) -> None:
        """Do not run what waits."""
        self._waiting.clear()

    def flush(self) -> None:
        """Run what waits."""
        if self._waiting:
            self.execute(self._waiting.pop())
