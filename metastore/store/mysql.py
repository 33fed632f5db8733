"""Cursors on MariaDB and MySQL that send statements that can wait together with the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pymysql.cursors import Cursor as PlainCursor

from metastore.store.answer import Answer

TOGETHER = 500_000
"""Characters of statements that go together: the server takes no packet above its max_allowed_packet, by default 16 MiB."""


class Cursor(PlainCursor):
    """Runs statements with named parameters (`%(name)s`). The connection needs the flag MULTI_STATEMENTS."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._waiting: list[tuple[str, Answer]] = []

    def execute(self, query: str, args: Mapping[str, Any] | None = None) -> int:  # type: ignore[override]  # no positional parameters
        """Run a statement, after what waits; return how many rows it found or changed. pymysql.Error."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return super().execute(query, args)
        text = self.mogrify(query, args)
        if len(text) + sum(len(each) for each, _ in waiting) > TOGETHER:
            for each, answer in waiting:
                super().execute(each)
                self._settle(answer)
            return super().execute(text)
        super().execute(";".join((*(each for each, _ in waiting), text)))
        for _, answer in waiting:
            self._settle(answer)
            self.nextset()
        return self.rowcount

    def _settle(self, answer: Answer) -> None:
        answer.settle(self.fetchall() if self.description else (), self.rowcount, self.lastrowid)

    def executemany(self, query: str, args: Iterable[Mapping[str, Any]]) -> int | None:  # type: ignore[override]  # see above
        """Run a statement for each set of parameters, after what waits."""
        self.flush()
        return super().executemany(query, list(args))

    def later(self, query: str, params: Mapping[str, Any] | None = None) -> Answer:
        """Run a statement together with the next one."""
        answer = Answer(self.flush)
        self._waiting.append((self.mogrify(query, params), answer))
        return answer

    def forget(self) -> None:
        """Do not run what waits."""
        self._waiting.clear()

    def flush(self) -> None:
        """Run what waits."""
        if self._waiting:
            text, answer = self._waiting.pop()
            self.execute(text)
            self._settle(answer)
