"""Hive's properties as settings: a property that promises safety is kept or refused, and never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from metastore.config import Config, ConfigError, load
from metastore.config.hive_properties import AUTHORIZING_LISTENERS, PROMISES, check, overruled, verdicts, without_effect

STORAGE_BASED = "org.apache.hadoop.hive.ql.security.authorization.StorageBasedAuthorizationProvider"
KERBEROS = {"hive.metastore.kerberos.principal": "hive/_HOST@EXAMPLE.ORG", "metastore.kerberos.keytab.file": "/etc/hive.keytab"}
ASKING = {
    "hive.metastore.sasl.enabled": "true",
    "metastore.sasl.enabled": " TRUE ",
    "hive.metastore.authentication": "LDAP",
    "metastore.authentication": "CUSTOM",
    "hive.metastore.use.SSL": "true",
    "metastore.use.SSL": "true",
    "hive.metastore.dbaccess.ssl.use.SSL": "true",
    "metastore.dbaccess.ssl.use.SSL": "true",
    "hadoop.rpc.protection": "privacy",
    "hive.security.metastore.authorization.manager": STORAGE_BASED,
    "hive.security.authorization.enabled": "true",
    "hive.metastore.pre.event.listeners": AUTHORIZING_LISTENERS[0],
    "metastore.pre.event.listeners": f"example:Mine, {AUTHORIZING_LISTENERS[1]}",
    "hive.metastore.filter.hook": "org.apache.hadoop.hive.ql.security.authorization.plugin.AuthorizationMetaStoreFilterHook",
    "metastore.filter.hook": AUTHORIZING_LISTENERS[1],
    "hive.metastore.authorization.storage.checks": "true",
    "metastore.authorization.storage.checks": "yes",
}


def site(folder: Path, properties: Mapping[str, str]) -> Path:
    path = folder / "hive-site.xml"
    items = "".join(f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in properties.items())
    path.write_text(f"<configuration>{items}</configuration>")
    return path


def loaded(folder: Path, properties: Mapping[str, str], *assignments: str) -> Config:
    given = ("db=postgresql://h/d", *assignments)
    return load(hive_site=site(folder, properties), assignments=given, environment={})


def outcome(config: Config, name: str) -> str:
    return next(each.outcome for each in verdicts(config) if each.name == name)


def test_each_spelling_of_each_promise_is_looked_at() -> None:
    assert set(ASKING) == {name for promise in PROMISES for name in promise.names}


@pytest.mark.parametrize("name", ASKING)
def test_a_promise_that_the_settings_do_not_keep_is_refused(tmp_path: Path, name: str) -> None:
    config = loaded(tmp_path, {name: ASKING[name], "hive.metastore.warehouse.dir": "/x"})
    promise = next(each for each in PROMISES if name in each.names)
    with pytest.raises(ConfigError) as refused:
        check(config)
    assert f"({config.hive[name]}) asks for {promise.wants}" in str(refused.value)
    assert promise.remedy in str(refused.value)
    assert outcome(config, name) == "refused"
    assert outcome(config, "hive.metastore.warehouse.dir") == "used"


@pytest.mark.parametrize("name", ASKING)
def test_a_property_that_promises_nothing_is_not_needed(tmp_path: Path, name: str) -> None:
    harmless = {
        "hadoop.rpc.protection": "privacy,authentication",
        "hive.metastore.authentication": "NONE",
        "metastore.authentication": "NOSASL",
    }
    config = loaded(tmp_path, {name: harmless.get(name, "false" if "listeners" not in name else "example:Mine")})
    check(config)
    assert outcome(config, name) in {"used", "not needed"}


def test_every_promise_is_refused_in_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        check(loaded(tmp_path, {"hive.metastore.use.SSL": "true", "hive.security.authorization.enabled": "true"}))
    assert [line.partition(" ")[0] for line in str(refused.value).splitlines()] == [
        "hive.metastore.use.SSL",
        "hive.security.authorization.enabled",
    ]


@pytest.mark.parametrize(
    ("properties", "authentication"),
    [
        ({"hive.metastore.sasl.enabled": "true", **KERBEROS}, ("kerberos", "token")),
        ({"metastore.authentication": "KERBEROS", **KERBEROS}, ("kerberos", "token")),
        ({"metastore.authentication": "ldap", "metastore.authentication.ldap.url": "ldap://a ldap://b"}, ("ldap",)),
        ({"metastore.authentication": "JWT", "metastore.authentication.jwt.jwks.url": "file:///keys"}, ("jwt",)),
        (
            {"hive.metastore.sasl.enabled": "1", **KERBEROS, "metastore.authentication": "LDAP", "metastore.authentication.ldap.url": "x"},
            ("kerberos", "token", "ldap"),
        ),
        ({"hive.metastore.sasl.enabled": "true", "hive.metastore.kerberos.principal": "a/b@C"}, ()),
        ({"hive.metastore.sasl.enabled": "true", **KERBEROS, "metastore.authentication": "CONFIG"}, ()),
        ({"hive.metastore.sasl.enabled": "false", **KERBEROS}, ()),
        ({"metastore.authentication": "LDAP"}, ()),
    ],
)  # fmt: skip
def test_logins_are_taken_where_all_they_need_is_named(tmp_path: Path, properties: dict[str, str], authentication: tuple[str, ...]) -> None:
    config = loaded(tmp_path, properties)
    assert config.authentication == authentication
    if authentication:
        check(config)
        assert str(tmp_path) in config.source("authentication")


def test_a_setting_of_ours_decides_and_the_operator_is_warned(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        {"hive.metastore.sasl.enabled": "true", "hive.security.authorization.enabled": "true", **KERBEROS},
        "authentication=users",
        "authorization=none",
    )
    check(config)
    assert config.authentication == ("users",)
    assert [line.partition(" ")[0] for line in overruled(config)] == ["hive.metastore.sasl.enabled", "hive.security.authorization.enabled"]
    assert "authentication (--set authentication)" in overruled(config)[0]


def test_tls_can_not_be_overruled_but_by_the_property(tmp_path: Path) -> None:
    asking = {"metastore.use.SSL": "true", "metastore.dbaccess.ssl.use.SSL": "true"}
    with pytest.raises(ConfigError, match="asks for TLS, which"):
        check(loaded(tmp_path, asking, "tls_required=true"))
    check(loaded(tmp_path, asking, "hive.metastore.use.SSL=false", "hive.metastore.dbaccess.ssl.use.SSL=false"))
    check(loaded(tmp_path, asking, "tls_certificate=/x.pem", "db=postgresql://h/d?sslmode=require"))
    check(loaded(tmp_path, asking, "tls_certificate=/x.pem", "db=sqlite:///x.db"))


def test_properties_that_authorize_in_hive_are_kept_by_the_setting(tmp_path: Path) -> None:
    asking = {name: value for name, value in ASKING.items() if "authorization" in name or "filter" in name or "listeners" in name}
    config = loaded(tmp_path, asking, "authorization=grants")
    check(config)
    assert {each.outcome for each in verdicts(config)} == {"used"}


def test_properties_without_effect_are_known_by_name(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        {
            "javax.jdo.option.ConnectionPassword": "hunter2",
            "datanucleus.connectionPool.maxPoolSize": "3",
            "hadoop.proxyuser.trino.hosts": "*",
            "hive.metastore.stats.auto.analyze": "all",
        },
    )
    assert without_effect(config) == ["javax.jdo.option.ConnectionPassword", "hive.metastore.stats.auto.analyze"]
    judged = {each.name: (each.outcome, each.text) for each in verdicts(config)}
    assert judged["datanucleus.connectionPool.maxPoolSize"] == ("used", "database_pool_size")
    assert judged["hadoop.proxyuser.trino.hosts"] == ("used", "proxy_users")
    assert judged["hive.metastore.stats.auto.analyze"] == ("not used", "kept for clients that ask for it")
    assert "hunter2" not in str(judged)
