"""The base of the kinds of authorization whose rules are kept elsewhere: the users in `admin_users` may do everything there too."""

from __future__ import annotations

from collections.abc import Sequence

from metastore.config import Config
from metastore.service.authorizer import Access, Authorizer, Who


class Administered(Authorizer):
    """Allows everything to admins, and asks `decide` about others."""

    def __init__(self, config: Config) -> None:
        self._admins = frozenset(config.admin_users)

    def allowed(self, who: Who, asked: Sequence[Access]) -> Sequence[bool]:
        """Answer for each access whether it is allowed."""
        return [True] * len(asked) if who.user in self._admins else self.decide(who, asked)

    def decide(self, who: Who, asked: Sequence[Access]) -> Sequence[bool]:
        """Answer for each access of a user who is not an admin."""
        raise NotImplementedError
