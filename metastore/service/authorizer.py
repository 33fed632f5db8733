"""The question that every kind of authorization answers: may this user do these things? It never looks anything up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from metastore.store.authorization.authorization import Owner
from metastore.store.authorization.authorization import owner as owner_of

__all__ = ["Access", "Authorizer", "Owner", "Who", "owner_of"]

SELECT, INSERT, UPDATE, DELETE = "SELECT", "INSERT", "UPDATE", "DELETE"
CREATE, ALTER, DROP = "CREATE", "ALTER", "DROP"
OWN = "OWN"
"""Ownership of an object, or all privileges on it: to give it away, for instance."""
SEE = "SEE"
"""To know that an object exists: a user with any privilege on it, or on something inside it, sees it."""
USE = "USE"
"""To put data at a location."""
ADMINISTER = "ADMINISTER"
"""To administer the server as a whole."""

SERVER, CATALOG, DATABASE, TABLE, FUNCTION, ROLE, LOCATION = "server", "catalog", "database", "table", "function", "role", "location"
CONNECTOR = "connector"
"""Kinds of objects."""


class Who(NamedTuple):
    """The caller: a user and its groups. An anonymous client has no user."""

    user: str | None
    groups: tuple[str, ...] = ()


class Access(NamedTuple):
    """One use of one object, to be decided. Names are normalised; names that the kind of object lacks are None."""

    privilege: str
    kind: str
    catalog: str | None = None
    database: str | None = None
    name: str | None = None
    """The name of the table, function, role or data connector. For the creation of a table in a database, the name of that table."""
    columns: tuple[str, ...] = ()
    owner: Owner | None = None
    """Owner of the object; None if nobody owns it. Not filled for databases if the authorizer has `knows_databases`."""
    key: int | None = None
    """The key of the table, which stays the same through renames."""
    location: str | None = None
    grant: bool = False
    """Whether it is about granting the privilege to others."""


class Authorizer:
    """Base of all kinds: made once in each worker process, serves all its threads.

    A class of your own derives from it, takes the server's settings and is named in the setting `authorization` as
    `package.module:Class`.
    """

    knows_databases = False
    """Whether the authorizer itself has the owners of databases: its caller then does not look them up."""

    def allowed(self, who: Who, asked: Sequence[Access]) -> Sequence[bool]:
        """Answer for each access, in their order, whether it is allowed. An exception refuses all."""
        raise NotImplementedError

    def sees_all_tables(self, who: Who, catalog: str, database: str) -> bool:  # noqa: ARG002  # for authorizers that can answer
        """Return whether `who` sees all tables of a database, also future ones: their names are then not asked for one by one."""
        return False

    def seen_tables(self, who: Who, catalog: str, database: str) -> set[str] | None:  # noqa: ARG002  # for authorizers that can answer
        """Return the names of the tables of a database that `who` sees; None where they have to be asked for one by one."""
        return None

    def renew(self) -> None:
        """Forget answers that may be outdated: this process has changed roles, privileges, locations or the owner of a database."""

    def close(self) -> None:
        """Release its resources, at the end of the process."""
