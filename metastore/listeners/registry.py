"""Load the configured listeners and call them. Never lets a listener's error after a commit fail the call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import structlog

from metastore.config import ConfigError
from metastore.config.classes import load_class
from metastore.config.hive_properties import AUTHORIZING_LISTENERS
from metastore.errors import MetaError, MetastoreError
from metastore.listeners.contract import (
    EndFunctionListener,
    InitListener,
    Listener,
    PostEventListener,
    PreEventListener,
    TransactionalListener,
)
from metastore.listeners.events import Event, FunctionEnd
from metastore.listeners.notifications import NotificationLog
from metastore.store.operations.notifications import LogRow

if TYPE_CHECKING:
    from metastore.config import Config

log = structlog.get_logger()
L = TypeVar("L", bound=Listener)

OWN = {"org.apache.hive.hcatalog.listener.DbNotificationListener", *AUTHORIZING_LISTENERS}
"""Hive's listeners that are not loaded, since the server itself does their work: the notification log, and authorization of calls."""

SETTINGS: dict[type[Listener], str] = {
    PreEventListener: "pre_event_listeners",
    TransactionalListener: "transactional_listeners",
    PostEventListener: "post_event_listeners",
    EndFunctionListener: "end_function_listeners",
    InitListener: "init_listeners",
}


class Listeners:
    """The listeners of one worker process, by kind and in the order of the settings; the notification log is the last of its kind."""

    def __init__(
        self,
        pre: Iterable[PreEventListener] = (),
        transactional: Iterable[TransactionalListener] = (),
        post: Iterable[PostEventListener] = (),
        end_function: Iterable[EndFunctionListener] = (),
        init: Iterable[InitListener] = (),
    ) -> None:
        self.pre = tuple(pre)
        self.transactional = tuple(transactional)
        self._log = next((each for each in self.transactional if isinstance(each, NotificationLog)), None)
        self.only_log = all(each is self._log for each in self.transactional)
        """Whether no transactional listener runs but the notification log, whose row a statement may write along with the change."""
        self.post = tuple(post)
        self.end = tuple(end_function)
        self.init = tuple(init)

    @classmethod
    def load(cls, config: Config) -> Listeners:
        """Make the listeners that the settings name; one object per class, for all its kinds. MetaError."""
        made: dict[str, Listener] = {}

        def of(kind: type[L]) -> list[L]:
            return [_make(kind, path, config, made) for path in getattr(config, SETTINGS[kind]) if path not in OWN]

        log = [NotificationLog(config)] if config.notification_log else []
        return cls(
            of(PreEventListener), [*of(TransactionalListener), *log], of(PostEventListener), of(EndFunctionListener), of(InitListener)
        )

    @staticmethod
    def check(config: Config) -> None:
        """Raise MetaError unless the classes that the settings name can be loaded. No object is made."""
        for kind, setting in SETTINGS.items():
            for path in getattr(config, setting):
                if path not in OWN:
                    _class(kind, path)

    def started(self) -> None:
        """Run the init listeners."""
        for listener in self.init:
            listener.started()

    def before(self, event: Event) -> None:
        """Ask the pre-event listeners; the first that raises refuses the change."""
        for listener in self.pre:
            try:
                listener.before(event)
            except MetastoreError:
                raise
            except Exception as error:
                raise MetaError(f"{type(listener).__name__} refused {type(event).__name__}: {error}") from error

    def within(self, changes: Sequence[Event], session: Any) -> list[int]:
        """Run the transactional listeners inside the changes' transaction; return the ids that notifications got at once."""
        return [key for listener in self.transactional for key in listener.within_all(changes, session)]

    def log_row(self, event: Event) -> LogRow | None:
        """Return the row that the notification log would write for a change that has exactly one; None without the log."""
        return None if self._log is None else self._log.plain_row(event)

    def after(self, event: Event, error: Exception | None) -> None:
        """Notify the post-event listeners of the outcome of the change."""
        for listener in self.post:
            _guarded(listener, lambda each=listener: each.after(event, error))  # type: ignore[misc]  # bound now

    def ended(self, function: FunctionEnd) -> None:
        """Notify the end-function listeners of the end of a call."""
        for listener in self.end:
            _guarded(listener, lambda each=listener: each.ended(function))  # type: ignore[misc]  # bound now


def _guarded(listener: Listener, call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:
        log.exception("listener failed", listener=type(listener).__name__)


def _class(kind: type[L], path: str) -> type[L]:
    unknown = "does not name a class of Python's: write package.module:Class"
    wrong = f"is not a {kind.__name__}: derive it from metastore.listeners.{kind.__name__}"
    try:
        return load_class(path, kind, "listener", unknown=unknown, wrong=wrong)
    except ConfigError as error:
        raise MetaError(str(error)) from error


def _make(kind: type[L], path: str, config: Config, made: dict[str, Listener]) -> L:
    cls = _class(kind, path)
    if path not in made:
        try:
            made[path] = cls(config)
        except Exception as error:
            raise MetaError(f"listener {path!r} can not be made: {type(error).__name__}: {error}") from error
    return cast(L, made[path])
