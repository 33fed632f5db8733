"""The content of a call: the server's parts and the client. This module never does anything itself."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from metastore.listeners.events import ClientInfo
from metastore.service.call.hints import Hints
from metastore.service.call.identity import Login
from metastore.service.call.releases import ReleaseTraces
from metastore.warehouse.trash import own_user

if TYPE_CHECKING:
    from metastore.config import Config
    from metastore.listeners import Listeners
    from metastore.service.authorizer import Authorizer
    from metastore.store.core.database import Database
    from metastore.store.core.replica import Replica
    from metastore.warehouse import Journal, Warehouse


@dataclass(frozen=True, slots=True)
class Metastore:
    """The parts of one running server; made by `metastore.app`, one in each worker process."""

    config: Config
    database: Database
    warehouse: Warehouse
    listeners: Listeners
    journal: Journal | None = None
    """The journal in which directories are noted before they are made; None in tests that kill nothing."""
    authorizer: Authorizer | None = None
    """The authorizer; None if everybody may do everything."""
    replica: Replica | None = None
    """The replica that may answer reads of the catalog; None without one."""


@dataclass(slots=True)
class Client:
    """One connection's client: its address and the user for whom its calls act."""

    address: str
    user: str | None = None
    """The user for whom calls are made: by the login, else by `set_ugi`."""
    groups: list[str] = field(default_factory=list)
    login: Login | None = None
    """The login that the client proved; None for a client without a login."""
    release: ReleaseTraces = field(default_factory=ReleaseTraces)
    """The signs of its release that its calls gave."""
    config: Config | None = None
    """The settings that hold for this connection alone (`setMetaConf`), None while they are the server's."""
    traceparent: str = ""
    """The trace to which the next call belongs, from the header of that name; "" without one."""
    calls: int = 0
    last_method: str = ""
    last_call: float = 0.0
    """The number of answered calls, the method of the last one, and the time of its end, by `time.perf_counter`."""
    running: str = ""
    running_since: float = 0.0
    """The method that runs now, "" for none, and the time of its start, by `time.perf_counter`."""
    reads_primary_until: float = 0.0
    """The time, by `time.monotonic`, until which the client reads from the primary: from then on a replica surely has its last change."""
    hints: Hints = field(default_factory=Hints)
    """The client's requests in transactions (see `service.transactions.fast_paths`)."""

    @property
    def mechanism(self) -> str:
        """The mechanism by which the client logged in, "" if it did not."""
        return "" if self.login is None else self.login.mechanism

    @property
    def real_user(self) -> str | None:
        """The user who logged in, where the calls act for somebody else."""
        if self.login is None:
            return None
        return self.login.real_user or (self.login.user if self.login.user != self.user else None)


@dataclass(slots=True)
class Call:
    """One request: the method's name on the wire, its client, and the server that answers."""

    metastore: Metastore
    client: Client
    method: str
    refused: bool = False
    """Whether the caller lacks a privilege, or named an object that it may not see."""
    from_replica: bool = False
    """Whether a replica may answer."""
    chosen: Database | None = None
    """The database that the call reads from, once that is known."""

    @property
    def config(self) -> Config:
        """The server's settings, with those that the connection has of its own."""
        return self.client.config or self.metastore.config

    @property
    def database(self) -> Database:
        """The relational database: a replica for methods that only read the catalog, if one is recent enough."""
        if self.chosen is None:
            self.chosen = self._choose()
        return self.chosen

    def _choose(self) -> Database:
        replica = self.metastore.replica
        if (
            replica is None
            or not self.from_replica
            or not replica.is_fresh
            or time.monotonic() < self.client.reads_primary_until
        ):  # fmt: skip
            return self.metastore.database
        return replica.database

    def note_change(self) -> None:
        """Note that the call may have changed something: the client's next reads use the primary."""
        if self.metastore.replica is not None:
            self.client.reads_primary_until = time.monotonic() + self.metastore.replica.staleness

    @property
    def warehouse(self) -> Warehouse:
        """The file systems."""
        return self.metastore.warehouse

    @property
    def listeners(self) -> Listeners:
        """The hooks."""
        return self.metastore.listeners

    @property
    def caller(self) -> str:
        """The owner of objects that the call makes without one: its client's user, else the server's own."""
        return self.client.user or own_user()

    @property
    def takes_special_characters(self) -> bool:
        """Whether names may hold more than letters, digits and `_`: by the setting, except that 3's client can not handle them."""
        return self.config.special_characters_in_table_names and not self.client.release.is_3

    @property
    def may_name_others(self) -> bool:
        """Whether errors may name objects that the request does not name: not with an authorizer, which may hide them from the client."""
        return self.metastore.authorizer is None

    @property
    def info(self) -> ClientInfo:
        """The client as listeners see it."""
        client = self.client
        return ClientInfo(client.address, client.user, tuple(client.groups), self.method, client.mechanism, client.real_user)
