"""The numbers of SQL statements that operations run, stored in one file.

    pytest tests/service tests/jobs --update-statement-counts

writes the numbers of the tests that run; the commit's message has to explain the change.

A test counts operations under names. On each kind of database the numbers have to equal the numbers of the file. Other parameters of the
test do not matter: a test that runs with one partition and with fifty shows that the number does not grow.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from metastore.store.core.database import Database

T = TypeVar("T")
FILE = Path(__file__).with_name("statement_counts.json")
Numbers = dict[str, dict[str, dict[str, int]]]
"""Numbers of statements by test, operation and kind of database."""


def stored() -> Numbers:
    """Return the numbers of the file."""
    numbers: Numbers = json.loads(FILE.read_text())
    return numbers


class StatementCounts:
    """Counts the statements of one test on one kind of database; BEGIN and COMMIT are not among them."""

    def __init__(self, test: str, database: Database, *, update: bool) -> None:
        """Begin the counts of one test. With `update` they are written, and not compared."""
        self._test = test
        self.database = database
        """The database whose statements are counted."""
        self._update = update
        self._numbers: dict[str, int] = {}

    def __call__(self, operation: str, work: Callable[[], T]) -> T:
        """Do some work and return its result. AssertionError when its number of statements differs from the file."""
        seen: list[str] = []
        self.database.observer = seen.append
        try:
            result = work()
        finally:
            self.database.observer = None
        self.note(operation, len(seen), seen)
        return result

    def note(self, operation: str, number: int, texts: list[str]) -> None:
        """Compare a number of statements with the file. AssertionError, with the statements' texts, when they differ."""
        assert operation not in self._numbers, f"{operation} is counted twice: give it another name"
        self._numbers[operation] = number
        if self._update:
            return
        kind = self.database.driver.name
        expected = stored().get(self._test, {}).get(operation, {}).get(kind)
        shown = "".join(f"\n    {text}" for text in texts)
        assert number == expected, f"{operation} on {kind}: {number} statements, not {expected}{shown}"

    def write(self) -> None:
        """Put the numbers into the file; other processes may do so at the same time."""
        with FILE.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            numbers: Numbers = json.loads(file.read())
            for operation, number in self._numbers.items():
                numbers.setdefault(self._test, {}).setdefault(operation, {})[self.database.driver.name] = number
            file.seek(0)
            file.truncate()
            file.write(_as_text(numbers))


@contextmanager
def counting(request: pytest.FixtureRequest, database: Database) -> Iterator[StatementCounts]:
    """Count statements of a database in the test that makes the request."""
    update = bool(request.config.getoption("update_statement_counts"))
    counted = StatementCounts(f"{request.path.stem}.{request.node.originalname}", database, update=update)
    yield counted
    if update:
        counted.write()


def _as_text(numbers: Numbers) -> str:
    """Return JSON with an operation a line."""
    tests = [
        f"  {json.dumps(test)}: {{\n"
        + ",\n".join(f"    {json.dumps(each)}: {json.dumps(of, sort_keys=True)}" for each, of in sorted(operations.items()))
        + "\n  }"
        for test, operations in sorted(numbers.items())
    ]
    return "{\n" + ",\n".join(tests) + "\n}\n"
