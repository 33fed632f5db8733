"""What a call carries: the server's parts and the client that speaks. It never does anything itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from metastore.idl import TxnType
from metastore.listeners.events import ClientInfo
from metastore.rules.transactions import Intent
from metastore.store.at_once import PLAIN, Guess
from metastore.store.locks import Given
from metastore.store.transactions import RANGES
from metastore.store.write_ids import Key
from metastore.warehouse.trash import own_user

if TYPE_CHECKING:
    from metastore.config import Config
    from metastore.listeners import Listeners
    from metastore.store.database import Database
    from metastore.warehouse import Journal, Warehouse


@dataclass(frozen=True, slots=True)
class Metastore:
    """The parts of one running server; made by `metastore.app`, one in each worker process."""

    config: Config
    database: Database
    warehouse: Warehouse
    listeners: Listeners
    journal: Journal | None = None
    """Where directories being made are noted; None in tests that kill nothing."""


MOST_WORKS = 256
"""Transactions that are remembered of a connection."""


@dataclass(slots=True)
class Work:
    """What one connection's client asked for in a transaction. Another one may have asked for more: it tells what to try, no more."""

    type: int = TxnType.DEFAULT
    holds: int = 0
    """Bits of `store.transactions`."""
    intents: list[Intent] = field(default_factory=list)
    changes: frozenset[Key] = frozenset()
    """The tables of which it is to change rows that are there: the commit has conflicts to look for."""
    given: dict[Key, Given] = field(default_factory=dict)
    """Write ids."""

    @property
    def guess(self) -> Guess:
        """What the transaction may be."""
        return Guess(self.type, self.holds, len(self.intents))

    @property
    def only_intent(self) -> Intent | None:
        """The one object that it is to write to, with the write id that the client was given; None for none or several."""
        if len(self.intents) != 1:
            return None
        given = self.given.get(Key.of(self.intents[0]))
        return self.intents[0] if given is None else self.intents[0]._replace(write_id=given.write_id)


@dataclass(slots=True)
class Client:
    """One connection's client: where it comes from and who it says it is (`set_ugi`)."""

    address: str
    user: str | None = None
    groups: list[str] = field(default_factory=list)
    used_get_table: bool = False
    """Whether it called `get_table`: with `used_request_methods`, tells a 2.3 client from a later one."""
    used_request_methods: bool = False
    config: Config | None = None
    """The settings that hold for this connection alone (`setMetaConf`), None while they are the server's."""
    works: dict[int, Work] = field(default_factory=dict)
    """What it asked for in the transactions that it opened last, by their ids (`work_in`, `has_opened`)."""

    def has_opened(self, transactions: Sequence[int], kind: int) -> None:
        """Note transactions that it opened."""
        if len(self.works) + len(transactions) > MOST_WORKS:
            self.works.clear()
        holds = RANGES if len(transactions) > 1 else 0
        self.works.update((key, Work(kind, holds)) for key in transactions[:MOST_WORKS])

    def work_in(self, transaction: int) -> Work:
        """Return what it asked for in a transaction; of one that it did not open here, or long ago, anything may have been."""
        found = self.works.get(transaction)
        if found is None:
            self.has_opened([transaction], TxnType.DEFAULT)
            found = self.works[transaction]
            found.holds = PLAIN
        return found


@dataclass(slots=True)
class Call:
    """One request: the method's name on the wire, its client, and the server that answers."""

    metastore: Metastore
    client: Client
    method: str

    @property
    def config(self) -> Config:
        """The server's settings, with those that the connection has of its own."""
        return self.client.config or self.metastore.config

    @property
    def database(self) -> Database:
        """The relational database."""
        return self.metastore.database

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
        """Who owns what the call makes without an owner: its client's user, else the server's own."""
        return self.client.user or own_user()

    @property
    def info(self) -> ClientInfo:
        """What listeners are told of the client."""
        client = self.client
        return ClientInfo(client.address, client.user, tuple(client.groups), self.method)
