"""Decide by a file of rules in the form of Trino's file-based access control (`rules.json`). Never writes it.

In each list the first rule that fits decides; without a fitting rule the access is refused. A missing list of catalogs, schemas or tables
allows everything, a missing list of functions or locations nothing. The file is read again when it changes. While the new file is broken,
the rules that were read before stay valid. Source: Trino's FileBasedSystemAccessControl and its documentation.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import structlog

from metastore.config import Config
from metastore.errors import MetaError
from metastore.places import is_in, place_of
from metastore.service.authorization.administered import Administered
from metastore.service.authorizer import (
    ALTER,
    CATALOG,
    CREATE,
    DATABASE,
    DELETE,
    DROP,
    FUNCTION,
    INSERT,
    LOCATION,
    OWN,
    SEE,
    SELECT,
    TABLE,
    UPDATE,
    Access,
    Who,
)

log = structlog.get_logger()

LOOK_AGAIN = 1.0
"""Seconds after which a changed file is seen."""
MOST_REMEMBERED = 100_000
"""Answers that one set of rules keeps."""
OWNERSHIP = "OWNERSHIP"
TABLE_PRIVILEGES = frozenset({SELECT, INSERT, DELETE, UPDATE, OWNERSHIP, "GRANT_SELECT"})
FUNCTION_PRIVILEGES = frozenset({"EXECUTE", "GRANT_EXECUTE", OWNERSHIP})
CATALOG_ACCESS = {"all": 2, "read-only": 1, "none": 0, True: 2, False: 0}
IGNORED = frozenset(
    {
        "queries", "impersonation", "principals", "system_information", "system_session_properties", "catalog_session_properties",
        "procedures", "authorization",
    }
)  # fmt: skip
"""Lists that are about Trino itself."""
NEEDED = {ALTER: OWNERSHIP, DROP: OWNERSHIP, OWN: OWNERSHIP, CREATE: OWNERSHIP}
"""The privilege of a rule that allows the wanted access to a table; other accesses need the privilege of their own name."""


class FileRule(NamedTuple):
    """One rule: the users and objects that it fits, and its decision. An expression that is None fits everything."""

    user: re.Pattern[str] | None
    group: re.Pattern[str] | None
    catalog: re.Pattern[str] | None
    schema: re.Pattern[str] | None
    name: re.Pattern[str] | None
    says: Any

    def fits(self, who: Who) -> bool:
        """Return whether the rule is about a user: by the name, and by one of the groups."""
        return _fits(self.user, who.user or "") and (self.group is None or any(self.group.fullmatch(each) for each in who.groups))


def _fits(pattern: re.Pattern[str] | None, text: str | None) -> bool:
    return pattern is None or pattern.fullmatch(text or "") is not None


class Rules:
    """The rules of one file as it was read; a list that the file lacks is None."""

    def __init__(self, text: bytes) -> None:
        values = orjson.loads(text)
        if not isinstance(values, Mapping):
            raise ValueError("the file holds no JSON object")
        known = {"catalogs", "schemas", "tables", "functions", "locations"}
        if unknown := sorted(values.keys() - known - IGNORED):
            raise ValueError(f"it has the unknown lists {unknown}: {', '.join(sorted(known))} are known")
        self.catalogs = _rules(values, "catalogs", None, _catalog_access)
        self.schemas = _rules(values, "schemas", None, lambda rule: rule.get("owner") is True)
        self.tables = _rules(values, "tables", "table", lambda rule: _privileges(rule, TABLE_PRIVILEGES))
        self.functions = _rules(values, "functions", "function", lambda rule: _privileges(rule, FUNCTION_PRIVILEGES))
        self.locations = _rules(values, "locations", None, _location) or ()
        self._answers: dict[tuple[Who, Access], bool] = {}

    def allows(self, who: Who, access: Access) -> bool:
        """Answer about one access."""
        key = (who, access._replace(owner=None, key=None))
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= MOST_REMEMBERED:
                self._answers.clear()
            found = self._answers[key] = self._decide(who, access)
        return found

    def _decide(self, who: Who, access: Access) -> bool:
        if access.kind == LOCATION:
            place = place_of(access.location)
            return place is not None and next((True for rule in self.locations if rule.fits(who) and is_in(place, rule.says)), False)
        if access.kind not in (CATALOG, DATABASE, TABLE, FUNCTION):
            return False
        reads = access.privilege in (SEE, SELECT) and not access.grant
        if self._catalog(who, access.catalog) < (1 if reads else 2):
            return False
        if access.kind == CATALOG:
            return reads or (access.privilege == CREATE and access.database is not None and self._owns_schema(who, access))
        if access.kind == DATABASE:
            return self._schema(who, access)
        if access.kind == FUNCTION:
            return self._function(who, access)
        return self._table(who, access)

    def _catalog(self, who: Who, name: str | None) -> int:
        if self.catalogs is None:
            return 2
        return next((rule.says for rule in self.catalogs if rule.fits(who) and _fits(rule.catalog, name)), 0)

    def _owns_schema(self, who: Who, access: Access) -> bool:
        if self.schemas is None:
            return True
        fitting = (rule for rule in self.schemas if rule.fits(who) and _fits(rule.catalog, access.catalog))
        return next((bool(rule.says) for rule in fitting if _fits(rule.schema, access.database)), False)

    def _schema(self, who: Who, access: Access) -> bool:
        if access.privilege == SEE:
            lists = [(self.tables, TABLE_PRIVILEGES), *([(self.functions, FUNCTION_PRIVILEGES)] if self.functions is not None else [])]
            return self._owns_schema(who, access) or any(self._in_schema(who, access, rules) for rules, _ in lists)
        if access.privilege == CREATE and access.name is not None:
            return OWNERSHIP in self._held(who, access, self.tables, TABLE_PRIVILEGES)
        return self._owns_schema(who, access)

    def _in_schema(self, who: Who, access: Access, rules: Sequence[FileRule] | None) -> bool:
        """Return whether a schema may contain an object on which the user has a privilege."""
        if rules is None:
            return True
        fitting = (rule for rule in rules if rule.fits(who) and _fits(rule.catalog, access.catalog) and _fits(rule.schema, access.database))
        for rule in fitting:
            if rule.says:
                return True
            if rule.name is None or rule.name.pattern == ".*":
                return False
        return False

    def _held(self, who: Who, access: Access, rules: Sequence[FileRule] | None, everything: frozenset[str]) -> frozenset[str]:
        if rules is None:
            return everything
        fitting = (rule for rule in rules if rule.fits(who) and _fits(rule.catalog, access.catalog) and _fits(rule.schema, access.database))
        return next((rule.says for rule in fitting if _fits(rule.name, access.name)), frozenset[str]())

    def _table(self, who: Who, access: Access) -> bool:
        held = self._held(who, access, self.tables, TABLE_PRIVILEGES)
        if access.grant:
            return OWNERSHIP in held or (access.privilege == SELECT and "GRANT_SELECT" in held)
        return bool(held) if access.privilege == SEE else NEEDED.get(access.privilege, access.privilege) in held

    def _function(self, who: Who, access: Access) -> bool:
        held = frozenset[str]() if self.functions is None else self._held(who, access, self.functions, FUNCTION_PRIVILEGES)
        return bool(held) if access.privilege == SEE else OWNERSHIP in held


def _rules(values: Mapping[str, Any], part: str, name: str | None, says: Callable[[Mapping[str, Any]], Any]) -> list[FileRule] | None:
    """Return the rules of one list, None for one that is missing. ValueError names the rule that can not be read."""
    found = values.get(part)
    if found is None:
        return None
    out = []
    for number, rule in enumerate(found if isinstance(found, list) else [found], 1):
        try:
            if not isinstance(rule, Mapping):
                raise ValueError("it is not an object")  # ValueError, like all faults of a file
            if "role" in rule:
                raise ValueError("`role` is of Trino's sessions, which a metastore does not see: use `user` or `group`")
            user, group, catalog, schema, of_name = (_pattern(rule, key) for key in ("user", "group", "catalog", "schema", name))
            out.append(FileRule(user, group, catalog, schema, of_name, says(rule)))
        except (ValueError, TypeError, re.error) as error:
            raise ValueError(f"rule {number} of {part}: {error}") from error
    return out


def _pattern(rule: Mapping[str, Any], key: str | None) -> re.Pattern[str] | None:
    return None if key is None or rule.get(key) is None else re.compile(rule[key])


def _catalog_access(rule: Mapping[str, Any]) -> int:
    allow = rule.get("allow", "none")
    if allow not in CATALOG_ACCESS:
        raise ValueError(f"`allow` is {allow!r}: write all, read-only or none")
    return CATALOG_ACCESS[allow]


def _privileges(rule: Mapping[str, Any], known: frozenset[str]) -> frozenset[str]:
    held = rule.get("privileges")
    if not isinstance(held, list) or not all(isinstance(each, str) for each in held):
        raise ValueError("`privileges` is not a list of texts")
    found = frozenset(each.upper() for each in held)
    if unknown := sorted(found - known):
        raise ValueError(f"it has the unknown privileges {unknown}: {', '.join(sorted(known))} are known")
    return found


def _location(rule: Mapping[str, Any]) -> str:
    place = place_of(rule.get("location"))
    if place is None:
        raise ValueError("`location` is missing or not a location: write scheme://authority/path or /path")
    return place


class RulesFile(Administered):
    """Answers by the file that the setting `authorization_file` names."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if not config.authorization_file:
            raise MetaError("authorization file needs the setting authorization_file: name a file of rules")
        self._path = config.authorization_file
        try:
            self._state, self._rules = self._read()
        except (OSError, ValueError) as error:
            raise MetaError(f"authorization_file {self._path} can not be read: {error}") from error
        self._look_at = time.monotonic() + LOOK_AGAIN

    def decide(self, who: Who, asked: Sequence[Access]) -> list[bool]:
        """Answer by the rules."""
        rules = self._current()
        return [rules.allows(who, each) for each in asked]

    def _read(self) -> tuple[tuple[int, int, int], Rules]:
        state = self._stat()
        with open(self._path, "rb") as file:  # noqa: PTH123  # beside os.stat
            return state, Rules(file.read())

    def _stat(self) -> tuple[int, int, int]:
        found = os.stat(self._path)  # noqa: PTH116  # one call a second
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _current(self) -> Rules:
        now = time.monotonic()
        if now < self._look_at:
            return self._rules
        self._look_at = now + LOOK_AGAIN
        state: tuple[int, int, int] | None = None
        try:
            state = self._stat()
            if state != self._state:
                self._state, self._rules = self._read()
                log.info("authorization rules were read again", file=self._path)
        except (OSError, ValueError):
            if state is not None:
                self._state = state  # it is logged once
            log.exception("authorization rules can not be read, the previous ones stay in use", file=self._path)
        return self._rules
