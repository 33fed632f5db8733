"""A process's memory of its database: bounded regions with names, emptied in one place.

region           by                 holds                                        is right as long as
columns          hash of content    decoded lists of columns                     always: content does not change
storage_formats  hash of content    decoded storage formats                      always
tables           names              rows of tables whose partitions changed      the row is the same: it is locked and compared
lock_queues      name               queues without a lock to wait for            `changes` of the queue's row are the same

The user of an entry that may be outdated checks it against the database, so other processes do not notify this one. A function that
renames, drops or reallocates calls `dependents.invalidate`. Nothing that a region returns can be changed in place: rows are tuples, lists
and dicts are made by `frozen`.

Other memories are not regions, and `dependents.invalidate` does not reach them: users' privileges (`service.authorization.grants`, by a
count of changes), the passwords that fitted their hashes (`service.accounts.users`), numbers of objects
(`service.operations.observations`), answers of another server (`service.authorization.asking`), and hints (`service.call.hints`). Decision
record 25 describes each.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Any, Generic, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Region(Generic[K, V]):
    """A cache of at most `limit` values; the oldest one is removed first. Safe for threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.hits = self.misses = 0
        """The number of look-ups that found a value, and of look-ups that did not. Two threads at the same instant may count once."""
        self._values: dict[K, V] = {}
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """Return a value, or None."""
        value = self._values.get(key)
        if value is None:
            self.misses += 1
        else:
            self.hits += 1
        return value

    def put(self, key: K, value: V) -> V:
        """Keep a value, and return it."""
        with self._lock:
            while len(self._values) >= self.limit and key not in self._values:
                self._values.pop(next(iter(self._values)), None)
            self._values[key] = value
        return value

    def discard(self, key: K) -> None:
        """Forget a value."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)


class QuietQueue:
    """The queue of a database's locks as it was when its row had these `changes` (see `store.transactions.locks`)."""

    __slots__ = ("_quiet", "changes")
    LIMIT = 1000
    """The largest number of combinations of lock types and tables that are noted for one queue."""

    def __init__(self, changes: int) -> None:
        self.changes = changes
        self._quiet: frozenset[Hashable] = frozenset()

    def is_quiet(self, wanted: Hashable) -> bool:
        """Return whether none of the wanted components had to wait."""
        return wanted in self._quiet

    def note(self, wanted: Hashable, *, quiet: bool) -> None:
        """Note whether none of the wanted components has to wait."""
        if not quiet:
            self._quiet -= {wanted}
        elif len(self._quiet) < self.LIMIT:
            self._quiet |= {wanted}


class Caches:
    """The regions of one process and database."""

    def __init__(self) -> None:
        self.columns: Region[int, Any] = Region(100_000)
        self.storage_formats: Region[int, Any] = Region(100_000)
        self.tables: Region[tuple[str, str, str], tuple[Any, ...]] = Region(200)
        self.lock_queues: Region[str, QuietQueue] = Region(10_000)

    def regions(self) -> dict[str, Region[Any, Any]]:
        """Return all regions by their names."""
        return vars(self)

    def discard_changed(self) -> None:
        """Forget all that may be outdated: the database may be a standby that lacks the last changes."""
        self.tables.clear()
        self.lock_queues.clear()


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("this is shared with the cache of the process: copy it before you change it")


class FrozenList(list[Any]):
    """A list that can not be changed; a copy of it can."""

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class FrozenDict(dict[Any, Any]):
    """A dict that can not be changed; a copy of it can."""

    __slots__ = ()
    update = pop = popitem = clear = setdefault = __setitem__ = __delitem__ = __ior__ = _refuse

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def frozen(value: Any) -> Any:
    """Return a JSON value whose lists and dicts, at any depth, can not be changed."""
    if isinstance(value, list):
        return FrozenList(map(frozen, value))
    if isinstance(value, dict):
        return FrozenDict((key, frozen(item)) for key, item in value.items())
    return value
