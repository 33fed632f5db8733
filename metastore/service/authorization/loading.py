"""Make the authorizer that the settings name. Never asks it anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.config import ConfigError
from metastore.config.classes import load_class
from metastore.errors import MetaError
from metastore.service.authorization.grants import Grants
from metastore.service.authorization.opa import Opa
from metastore.service.authorization.ranger import Ranger
from metastore.service.authorization.rules_file import RulesFile
from metastore.service.authorizer import Authorizer

if TYPE_CHECKING:
    from metastore.config import Config
    from metastore.store.core.database import Database

NONE = "none"
KINDS: dict[str, type[Authorizer]] = {"file": RulesFile, "opa": Opa, "ranger": Ranger}


def load(config: Config, database: Database) -> Authorizer | None:
    """Return the authorizer of a process, None if everybody may do everything. MetaError."""
    kind = config.authorization
    if kind == NONE:
        return None
    if kind == "grants":
        return Grants(database)
    cls = KINDS.get(kind) or _class(kind)
    try:
        return cls(config)  # type: ignore[call-arg]  # the contract of a class of one's own
    except MetaError:
        raise
    except Exception as error:
        raise MetaError(f"authorization {kind!r} can not be made: {type(error).__name__}: {error}") from error


def _class(path: str) -> type[Authorizer]:
    unknown = "is unknown: write none, grants, file, opa, ranger or package.module:Class"
    wrong = "is not an Authorizer: derive it from metastore.service.authorizer.Authorizer"
    try:
        return load_class(path, Authorizer, "authorization", unknown=unknown, wrong=wrong)
    except ConfigError as error:
        raise MetaError(str(error)) from error
