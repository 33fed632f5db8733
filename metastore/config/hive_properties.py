"""Judge the properties under Hive's names: used, not needed, not used, or refused because they promise more than this server will do.

A promise is a property that makes Hive's metastore safer than this server, unless the server's own settings do the same. A promise that the
settings do not keep ends the start; an operator who overrides it by one of this server's settings is warned. Never reads a file.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from metastore.config.settings import Config, by_name
from metastore.config.values import ConfigError

AUTHORIZING_LISTENERS = (
    "org.apache.hadoop.hive.ql.security.authorization.AuthorizationPreEventListener",
    "org.apache.hadoop.hive.ql.security.authorization.plugin.metastore.HiveMetaStoreAuthorizer",
)
"""Hive's listeners that authorize calls: the setting `authorization` replaces them."""

_METHODS = {"KERBEROS": "kerberos", "LDAP": "ldap", "JWT": "jwt"}
_NEEDS = {"kerberos": ("kerberos_principal", "kerberos_keytab"), "ldap": ("ldap_url",), "jwt": ("jwt_jwks_urls",)}
_HARMLESS_FILTER = "org.apache.hadoop.hive.metastore.DefaultMetaStoreFilterHookImpl"
_FALSE = ("", "false", "no", "off", "0")

Outcome = Literal["used", "not needed", "not used", "refused"]


class Verdict(NamedTuple):
    """The judgement on one property, and its reason, or the setting that takes effect."""

    name: str
    outcome: Outcome
    text: str
    source: str


@dataclass(frozen=True)
class Promise:
    """A property that may ask for more safety than the server provides."""

    names: tuple[str, ...]
    """All spellings; the first is the one that documentation uses."""
    wants: str
    asks: Callable[[str], bool]
    """Whether a value asks for the protection."""
    kept: Callable[[Config, str], bool]
    """Whether the settings provide the protection that a value asks for."""
    setting: str
    """The setting that provides the protection. If this setting is given, it overrides the property, unless `binding`."""
    remedy: str
    binding: bool = False


def _both(name: str) -> tuple[str, ...]:
    return (f"hive.{name}", name)


def _true(value: str) -> bool:
    return value.strip().lower() not in _FALSE


def _authorized(config: Config, _value: str) -> bool:
    return config.authorization != "none"


def _methods(value: str) -> list[str]:
    """Return the mechanisms in a value of `metastore.authentication`, without NONE and NOSASL, which check no client."""
    return [each for each in value.upper().replace(",", " ").split() if each not in {"NONE", "NOSASL"}]


def _encrypts(url: str) -> bool:
    """Return whether a database is a file of this machine, or its URL has an option for TLS."""
    return urlsplit(url).scheme.startswith("sqlite") or "ssl" in urlsplit(url).query.lower()


_AUTHORIZATION = "set authorization to grants, file, opa, ranger or a class, or to none to allow everybody everything"

PROMISES: tuple[Promise, ...] = (
    Promise(
        _both("metastore.sasl.enabled"),
        "logins by Kerberos",
        _true,
        lambda config, _: "kerberos" in config.authentication,
        "authentication",
        "name kerberos_principal and kerberos_keytab, or set authentication to other logins",
    ),
    Promise(
        _both("metastore.authentication"),
        "logins",
        lambda value: bool(_methods(value)),
        lambda config, value: all(_METHODS.get(each, "") in config.authentication for each in _methods(value)),
        "authentication",
        "KERBEROS needs kerberos_principal and kerberos_keytab, LDAP ldap_url, JWT jwt_jwks_urls; in place of CONFIG add the user with "
        "`metastore users add` and set authentication=users; PAM and CUSTOM are not supported: set authentication to another login",
    ),
    Promise(
        ("hadoop.rpc.protection",),
        "protected messages",
        lambda value: bool(value.strip()) and "authentication" not in [each.strip() for each in value.split(",")],
        lambda config, _: bool({"kerberos", "token"} & set(config.authentication) or config.tls_certificate),
        "authentication",
        "only logins by kerberos or token protect messages in this way: set authentication to these, or tls_certificate",
    ),
    Promise(
        _both("metastore.use.SSL"),
        "TLS",
        _true,
        lambda config, _: bool(config.tls_certificate),
        "tls_certificate",
        "name tls_certificate, a PEM file (Java's key stores are not read; docs/authentication/tls.md explains how to convert one)",
        binding=True,
    ),
    Promise(
        _both("metastore.dbaccess.ssl.use.SSL"),
        "TLS to the database",
        _true,
        lambda config, _: _encrypts(config.db),
        "db",
        "set it in the URL of db, as in postgresql://HOST/NAME?sslmode=verify-full or mysql://HOST/NAME?ssl_ca=FILE",
        binding=True,
    ),
    Promise(("hive.security.metastore.authorization.manager",), "authorization", _true, _authorized, "authorization", _AUTHORIZATION),
    Promise(("hive.security.authorization.enabled",), "authorization", _true, _authorized, "authorization", _AUTHORIZATION),
    Promise(
        _both("metastore.pre.event.listeners"),
        "authorization",
        lambda value: any(each.strip() in AUTHORIZING_LISTENERS for each in value.split(",")),
        _authorized,
        "authorization",
        _AUTHORIZATION,
    ),
    Promise(
        _both("metastore.filter.hook"),
        "filtered answers",
        lambda value: _true(value) and value != _HARMLESS_FILTER,
        _authorized,
        "authorization",
        _AUTHORIZATION,
    ),
    Promise(
        _both("metastore.authorization.storage.checks"), "authorization by the storage", _true, _authorized, "authorization", _AUTHORIZATION
    ),
)

NOT_NEEDED: tuple[tuple[str, str], ...] = (
    ("javax.jdo.*", "see `db`; the database of a Java metastore has another schema"),
    ("datanucleus.*", "the server has no DataNucleus"),
    ("*metastore.uris", "for clients"),
    ("*metastore.thrift.uris", "for clients"),
    ("*metastore.client.*", "for clients"),
    ("*metastore.token.signature", "for clients"),
    ("*metastore.execute.setugi", "files are always made by the server's own user"),
    ("*metastore.keystore.*", "see `tls_certificate`"),
    ("*metastore.keymanagerfactory.*", "see `tls_certificate`"),
    ("*metastore.truststore.*", "see `tls_client_ca`"),
    ("*metastore.trustmanagerfactory.*", "see `tls_client_ca`"),
    ("*ssl.protocol.blacklist", "TLS 1.2 is the oldest version"),
    ("*metastore.dbaccess.ssl.*", "see `db`"),
    ("*metastore.authentication.config.*", "see `metastore users add`"),
    ("*metastore.custom.authentication.class", "see `authentication`"),
    ("hive.security.*", "see `authorization`"),
    ("*metastore.server.filter.enabled", "see `authorization`"),
    ("*metastore.event.db.notification.api.auth", "see `authorization`, which filters events for the reader"),
    ("*metastore.schema.verification*", "the schema is checked, and upgraded, at each start"),
    ("*metastore.schema.info.class", "the schema is checked, and upgraded, at each start"),
    ("*metastore.thrift.framed.transport.enabled", "both transports are accepted on the one port"),
    ("*metastore.thrift.compact.protocol.enabled", "both protocols are accepted on the one port"),
    ("*metastore.server.thrift.transport.mode", "HTTP is served on the same port, at `http_path`"),
    ("*metastore.server.*.threads", "see `workers`; a worker has as many threads as connections"),
    ("*metastore.thread.pool.size", "see `workers`"),
    ("*metastore.housekeeping.*", "each job runs on one of the servers of a database, by a lease"),
    ("*metastore.task.threads.*", "the server has jobs of its own"),
    ("*metastore.metrics.*", "see `/metrics`"),
    ("hive.service.metrics.*", "see `/metrics`"),
    ("*metastore.aggregate.stats.cache.*", "the server has caches of its own"),
    ("*metastore.cache*", "the server has caches of its own"),
    ("*metastore.rawstore.*", "the server has a store of its own"),
    ("*metastore.txn.store.impl", "the server has a store of its own"),
    ("*direct.sql*", "the server has SQL of its own"),
    ("*hmshandler.*", "the server has rules of its own to repeat a transaction"),
    ("*delegation.token.store.class", "tokens are kept in the database"),
    ("*delegation.key.update-interval", "there is no master key"),
    ("fs.*", "see `filesystem_options`"),
    ("dfs.*", "see `filesystem_options`"),
    ("hive.server2.*", "for Hive's engine"),
    ("hive.exec.*", "for Hive's engine"),
    ("hive.zookeeper.*", "for Hive's engine"),
    ("hive.support.concurrency", "for Hive's engine"),
    ("hive.txn.manager", "for Hive's engine"),
    ("hive.execution.*", "for Hive's engine"),
    ("hive.vectorized.*", "for Hive's engine"),
    ("mapred*", "for Hive's engine"),
    ("tez.*", "for Hive's engine"),
    ("yarn.*", "for Hive's engine"),
    ("spark.*", "for Spark"),
)
"""Patterns of names of properties that the server does not need, and the reasons. The first pattern that fits counts."""


def logins(given: Mapping[str, str], other: Mapping[str, str], values: Mapping[str, Any]) -> tuple[tuple[str, ...], str] | None:
    """Return the `authentication` that Hive's properties ask for, and the source of the property.

    `given` holds the properties' sources and `other` their values, `values` the settings. None if they ask for none, for an
    unknown mechanism, or for one that needs a setting which is not given.
    """
    wanted: list[str] = []
    source = ""
    for promise in PROMISES[:2]:
        name = _last(given, promise)
        if name is None or not promise.asks(other[name]):
            continue
        methods = ["kerberos"] if promise is PROMISES[0] else [_METHODS.get(each, "") for each in _methods(other[name])]
        if not all(method and all(values.get(need) for need in _NEEDS[method]) for method in methods):
            return None
        wanted += methods
        source = f"{name}, {given[name]}"
    if "kerberos" in wanted:
        wanted.insert(wanted.index("kerberos") + 1, "token")
    return (tuple(dict.fromkeys(wanted)), source) if wanted else None


def verdicts(config: Config) -> Iterator[Verdict]:
    """Yield the judgement on each property that was given under a name of Hive's, in the order in which they were given."""
    promised = {name: _judge(config, promise) for promise in PROMISES for name in promise.names}
    for name, source in config.hive.items():
        judged, setting = promised.get(name), by_name().get(name)
        if judged is not None and judged.outcome == "refused":
            yield judged._replace(name=name, source=source)
        elif setting is not None:
            yield Verdict(name, "used", setting.name, source)
        elif judged is not None:
            yield judged._replace(name=name, source=source)
        elif name.startswith("hadoop.proxyuser."):
            yield Verdict(name, "used", "proxy_users", source)
        else:
            why = next((text for pattern, text in NOT_NEEDED if fnmatch.fnmatchcase(name, pattern)), None)
            yield Verdict(name, "not needed", why, source) if why else Verdict(name, "not used", "kept for clients that ask for it", source)


def check(config: Config) -> None:
    """Raise ConfigError with every promise that the settings do not keep."""
    refused = [judged for judged in _judged(config) if judged.outcome == "refused"]
    if refused:
        raise ConfigError("\n".join(f"{each.name} ({each.source}) {each.text}" for each in refused))


def overruled(config: Config) -> list[str]:
    """Return a line for each promise that a setting of ours overrules."""
    return [f"{each.name} ({each.source}) {each.text}" for each in _judged(config) if each.outcome == "not used"]


def without_effect(config: Config) -> list[str]:
    """Return the names of the properties that have no effect here."""
    return [each.name for each in verdicts(config) if each.outcome in {"not needed", "not used"}]


def _last(given: Mapping[str, str], promise: Promise) -> str | None:
    """Return the spelling of a promise that was given last."""
    return next((each for each in reversed([*given]) if each in promise.names), None)


def _judged(config: Config) -> Iterator[Verdict]:
    for promise in PROMISES:
        if (judged := _judge(config, promise)) is not None:
            yield judged


def _judge(config: Config, promise: Promise) -> Verdict | None:
    """Return the judgement on a promise; None where it was not given. The spelling that was given last counts."""
    backing = by_name().get(promise.names[0])
    if backing is not None:
        if backing.name not in config.sources:
            return None
        name, value, source = promise.names[0], config.hive_value(backing.name, "") or "", config.source(backing.name)
    else:
        found = _last(config.hive, promise)
        if found is None:
            return None
        name, value, source = found, config.other[found], config.hive[found]
    if not promise.asks(value):
        return Verdict(name, "not needed", f"asks for nothing; see `{promise.setting}`", source)
    if promise.kept(config, value):
        return Verdict(name, "used", promise.setting, source)
    if promise.setting in config.sources and not promise.binding:
        where = f"{promise.setting} ({config.source(promise.setting)})"
        return Verdict(name, "not used", f"asks for {promise.wants}, which {where} does not provide", source)
    return Verdict(name, "refused", f"asks for {promise.wants}, which the settings do not provide: {promise.remedy}", source)
