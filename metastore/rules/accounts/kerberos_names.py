r"""Turn a Kerberos principal into a user's short name by the rules of `hadoop.security.auth_to_local`. It never looks up a user.

Source: Hadoop's KerberosName and its tests. Differences to Hadoop: DEFAULT's realm is taken from krb5.conf there, from the server's own
principal here; a name with an escaped separator (`\/`) is refused here, because Hadoop splits it in the wrong place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from metastore.errors import InvalidInput

_PRINCIPAL = re.compile(r"([^/@\\]+)(?:/([^/@\\]+))?(?:@([^/@\\]+))?")
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:\[(\d+):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?)/?(L)?")
_PARAMETER = re.compile(r"\$(\d*)")
_TO = re.compile(r"\\(.)|\$(\d)|([\\$])")
LONGEST = 1024
"""Characters of a principal; rules are regular expressions, whose time grows with the text."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A Kerberos name: `service/host@REALM`, the host and the realm None if it has none."""

    service: str
    host: str | None
    realm: str | None

    def __str__(self) -> str:
        return self.service + (f"/{self.host}" if self.host else "") + (f"@{self.realm}" if self.realm else "")


def parse_principal(text: str) -> Principal:
    """Read `name`, `name@REALM` or `name/host@REALM`. InvalidInput for anything else."""
    match = _PRINCIPAL.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise InvalidInput(
            f"{text[:LONGEST]!r} is not a Kerberos name of one or two parts and a realm, such as alice@REALM or hive/host@REALM"
        )
    return Principal(match[1], match[2], match[3])


@dataclass(frozen=True, slots=True)
class _Rule:
    text: str
    parts: int
    format: str
    matches: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    to: str
    everywhere: bool
    lower: bool

    def apply(self, names: Sequence[str]) -> str | None:
        """Return the short name of a realm and its parts, None where the rule does not fit. InvalidInput for a result with `/` or `@`."""
        if len(names) - 1 != self.parts:
            return None
        base = _PARAMETER.sub(lambda match: names[int(match[1])], self.format)
        if self.matches is not None and self.matches.fullmatch(base) is None:
            return None
        found = base if self.pattern is None else self.pattern.sub(self._replacement, base, count=0 if self.everywhere else 1)
        if re.search("[/@]", found):
            raise InvalidInput(f"The rule {self.text} makes {found!r}, which is not a short name; let it cut off the part after / or @")
        return found.lower() if self.lower else found

    def _replacement(self, match: re.Match[str]) -> str:
        return _TO.sub(lambda part: part[1] or (match[int(part[2])] or "" if part[2] else part[3]), self.to)


class NameRules:
    """The rules in their order; the first that fits a principal names its user."""

    def __init__(self, text: str, default_realm: str) -> None:
        """Read rules that white space separates. InvalidInput for one that can not be read."""
        self._default_realm = default_realm
        self._rules: list[_Rule | None] = []
        rest = text.strip()
        while rest:
            match = _RULE.match(rest)
            if match is None:
                raise InvalidInput(f"kerberos_name_rules: {rest[:200]!r} is not a rule; write DEFAULT or RULE:[2:$1@$0](regex)s/from/to/")
            self._rules.append(None if match[1] else _read(match))
            rest = rest[match.end() :].strip()

    def short_name(self, principal: str) -> str:
        """Return the user of a principal; a principal without host and realm is itself the user. InvalidInput where no rule fits."""
        name = parse_principal(principal)
        if name.realm is None and name.host is None:
            return name.service
        names = [name.realm or "", name.service, *([name.host] if name.host else [])]
        for rule in self._rules:
            found = (name.service if name.realm == self._default_realm else None) if rule is None else rule.apply(names)
            if found:
                return found
        raise InvalidInput(
            f"No rule of kerberos_name_rules names the user of {principal}; DEFAULT does for the realm {self._default_realm} alone. "
            "Add a rule such as RULE:[1:$1@$0](.*@OTHER\\.REALM)s/@.*//"
        )


def _read(match: re.Match[str]) -> _Rule:
    text, parts = match[0].strip(), int(match[2])
    for number in _PARAMETER.findall(match[3]):
        if not number or int(number) > parts:
            raise InvalidInput(f"kerberos_name_rules: ${number} in {text} names no part; there are $0, the realm, to ${parts}")
    try:
        matches = None if match[4] is None else re.compile(match[4])
        pattern = None if match[5] is None else re.compile(match[5])
    except re.error as error:
        raise InvalidInput(f"kerberos_name_rules: {text} has a regular expression that can not be read: {error}") from error
    to = match[6] or ""
    groups = pattern.groups if pattern is not None else 0
    for escaped, number, single in _TO.findall(to):
        if not escaped and (single or int(number) > groups):
            raise InvalidInput(
                f"kerberos_name_rules: the replacement of {text} names no group of its pattern; write \\{single or '$'} for the sign"
            )
    return _Rule(text, parts, match[3], matches, pattern, to, match[7] == "g", match[8] == "L")
