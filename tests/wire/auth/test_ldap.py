"""Passwords and groups of a real directory, OpenLDAP's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.config import Config, ConfigError
from metastore.service.call.identity import Login
from metastore.wire.auth.ldap import Ldap
from metastore.wire.auth.ldap_names import canonical, first_value, lies_below, name_in_pattern
from metastore.wire.auth.negotiation import BAD
from metastore.wire.auth.sasl import ClientRefused
from tests.support.logins import slapd
from tests.support.logins.slapd import ADMIN, PASSWORD, SUFFIX, Directory
from tests.support.servers.servers import serving
from tests.wire.auth.speaking import Speaker, logged_in

pytestmark = pytest.mark.skipif(slapd.PROGRAM is None, reason="needs slapd (Debian's package slapd)")
ANYTIME: AbstractContextManager[None] = nullcontext()
BASE = {"ldap_base_dn": SUFFIX, "ldap_user_dn_pattern": f"uid=%s,ou=people,{SUFFIX}"}
BY_GUID = {"ldap_base_dn": f"ou=people,{SUFFIX}", "ldap_group_base_dn": SUFFIX}
SEARCHING = {**BASE, "ldap_bind_dn": ADMIN, "ldap_bind_password": PASSWORD}


@pytest.fixture(scope="module")
def directory() -> Iterator[Directory]:
    with slapd.directory() as started:
        yield started


@pytest.mark.parametrize("account", [BASE, SEARCHING, BY_GUID])
def test_a_password_lets_in_with_the_groups_of_the_directory(directory: Directory, account: dict[str, str]) -> None:
    checked = Ldap(Config(ldap_url=(directory.url,), **account))  # type: ignore[arg-type]
    for _ in range(3):  # with pooled connections too
        assert checked.check("ann", PASSWORD, ANYTIME) == Login("ann", "ldap", groups=("analysts", "staff"))
    assert checked.check("ann", "wrong", ANYTIME) is None
    assert checked.check("nobody", PASSWORD, ANYTIME) is None
    assert checked.check(f"uid=ann,ou=people,{SUFFIX}", PASSWORD, ANYTIME) == Login("ann", "ldap", groups=("analysts", "staff"))


UNREADABLE = {"ldap_user_dn_pattern": f"uid=%s,ou=people,{SUFFIX}", "ldap_user_search_filter": "(uid=nobody)"}


@pytest.mark.parametrize("account", [BASE, SEARCHING, BY_GUID, UNREADABLE])
def test_one_entry_is_one_user_however_the_name_is_spelled(directory: Directory, account: dict[str, str]) -> None:
    """All spellings of a name are one user. Otherwise another spelling would evade rules, ownership and the delays for wrong passwords."""
    checked = Ldap(Config(ldap_url=(directory.url,), **account))  # type: ignore[arg-type]
    logins = [
        checked.check(name, PASSWORD, ANYTIME)
        for name in ("ann", "ANN", "Ann ", " ann", "\N{FULLWIDTH LATIN SMALL LETTER A}nn", f"UID=ANN,ou=people,{SUFFIX}")
    ]
    assert {login.user for login in logins if login is not None} == {"ann"}
    assert logins[1] is not None


@pytest.mark.parametrize("account", [BASE, SEARCHING])
def test_a_name_is_a_name_and_no_part_of_a_search(directory: Directory, account: dict[str, str]) -> None:
    checked = Ldap(Config(ldap_url=(directory.url,), **account))  # type: ignore[arg-type]
    login = checked.check("o'hara, (jo)*", PASSWORD, ANYTIME)
    assert login is not None
    assert login.groups == ()
    for name in ("*", "an*", "ann)(uid=*", "ann,ou=people", "\\61nn", "ann@elsewhere", f"uid=ann,ou=guests,{SUFFIX}"):
        assert checked.check(name, PASSWORD, ANYTIME) is None


DEVICE = f"cn=root,ou=devices,{SUFFIX}"
GUEST = f"uid=ann,ou=guests,{SUFFIX}"
SPELLINGS = (DEVICE, DEVICE.replace(",", ", "), DEVICE.upper(), "cn=ro\\6ft,ou=devices," + SUFFIX, f"cn = root , ou=devices,{SUFFIX}")


@pytest.mark.parametrize("more", [{}, {"ldap_user_search_filter": "(cn={0})"}, {"ldap_user_search_filter": "(|(uid={0})(cn={0}))"}])
@pytest.mark.parametrize("account", [BASE, SEARCHING, BY_GUID, {"ldap_domain": "example.org"}])
def test_an_entry_that_is_no_user_does_not_log_in(directory: Directory, account: dict[str, str], more: dict[str, str]) -> None:
    """The directory accepts the password of such an entry, whose first part is an administrator's name."""
    checked = Ldap(Config(ldap_url=(directory.url,), **account, **more))  # type: ignore[arg-type]
    for name in (*SPELLINGS, ADMIN, f"cn=staff,ou=groups,{SUFFIX}", f"ou=people,{SUFFIX}", SUFFIX, "=", "a=b=,", "uid=ann", "uid=ann,"):
        assert checked.check(name, PASSWORD, ANYTIME) is None, name


@pytest.mark.parametrize(
    ("account", "name", "user"),
    [
        # A bind name below the bases whose first part is not the user's name: the name in the entry is used.
        ({"ldap_base_dn": SUFFIX}, GUEST, "ann"),
        ({"ldap_base_dn": SUFFIX, "ldap_guid_key": "cn"}, f"uid=bob,ou=people,{SUFFIX}", "bob"),
        ({"ldap_base_dn": SUFFIX, "ldap_guid_key": "sn"}, f"uid=o'hara\\2C \\28jo\\29*,ou=people,{SUFFIX}", "o'hara, (jo)*"),
        # A pattern may use another attribute than `uid`. The user's name is still in `uid`.
        ({"ldap_user_dn_pattern": f"cn=%s,ou=staff,{SUFFIX}"}, "root", "carl"),
        ({"ldap_user_dn_pattern": f"cn=%s,ou=staff,{SUFFIX}"}, f"cn=root,ou=staff,{SUFFIX}", "carl"),
        ({"ldap_user_dn_pattern": f"cn=%s,ou=staff,{SUFFIX}:uid=%s,ou=people,{SUFFIX}"}, "ann", "ann"),
        ({"ldap_user_dn_pattern": f"uid=%s,ou=people,{SUFFIX}:cn=%s,ou=staff,{SUFFIX}"}, "root", "carl"),
    ],
)
def test_the_name_of_the_entry_decides_and_not_the_written_one(directory: Directory, account: dict[str, str], name: str, user: str) -> None:
    for settings in (account, {"ldap_base_dn": SUFFIX, **account, "ldap_bind_dn": ADMIN, "ldap_bind_password": PASSWORD}):
        if "ldap_bind_dn" in settings and name == "root":
            continue  # the account searches by names alone
        login = Ldap(Config(ldap_url=(directory.url,), **settings)).check(name, PASSWORD, ANYTIME)  # type: ignore[arg-type]
        assert login is not None
        assert login.user == user


def test_an_unknown_user_is_tried_as_a_wrong_password_is(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    bound = Ldap._bound
    monkeypatch.setattr(Ldap, "_bound", lambda self, dn, password: tried.append(dn) or bound(self, dn, password))  # type: ignore[func-returns-value]
    checked = Ldap(Config(ldap_url=(directory.url,), ldap_user_filter=("ann",), **SEARCHING))  # type: ignore[arg-type]
    for name in ("ann", "bob", "nobody", f"uid=nobody,ou=people,{SUFFIX}", DEVICE):
        checked.check("ann", "wrong", ANYTIME)
        tried.clear()
        assert checked.check(name, "wrong", ANYTIME) is None
        assert len(tried) == 1, name


@pytest.mark.parametrize(
    ("dn", "pattern", "name"),
    [
        ("uid=ann,ou=people,dc=x", "uid=%s,ou=people,dc=x", "ann"),
        ("UID = Ann , OU=People,DC=X", "uid=%s,ou=people,dc=x", "ann"),
        ("uid=a\\2cb,ou=people,dc=x", "uid=%s,ou=people,dc=x", "a,b"),
        ("uid=a\\,b,ou=people,dc=x", "uid=%s,ou=people,dc=x", "a,b"),
        ("cn=ann-corp,dc=x", "cn=%s-corp,dc=x", "ann"),
        ("cn=ann,dc=x", "cn=%s-corp,dc=x", None),
        ("cn=.x,dc=x", "cn=.%s,dc=x", "x"),
        ("uid=ann,ou=guests,dc=x", "uid=%s,ou=people,dc=x", None),
        ("uid=ann,ou=people,dc=x,dc=y", "uid=%s,ou=people,dc=x", None),
        ("uid=ann,cn=a,ou=people,dc=x", "uid=%s,ou=people,dc=x", None),
        ("uid=ann+ou=people,dc=x", "uid=%s,ou=people,dc=x", None),
        ("cn=ann,ou=people,dc=x", "uid=%s,ou=people,dc=x", None),
        ("uid=,ou=people,dc=x", "uid=%s,ou=people,dc=x", None),
        ("uid=ann", "%s", None),
        ("=", "=%s", None),
    ],
)
def test_a_name_is_read_out_of_a_pattern(dn: str, pattern: str, name: str | None) -> None:
    assert name_in_pattern(dn, pattern) == name


@given(st.text("=,+\\\\;# abé0\\0%s", max_size=20), st.text("=,+\\\\ abé0%s", max_size=20))
def test_any_text_is_a_name_or_none(dn: str, pattern: str) -> None:
    name_in_pattern(dn, pattern)
    assert canonical(dn) is None or first_value(dn)[0]
    assert not lies_below(dn, dn)


@pytest.mark.parametrize(
    ("settings", "admitted"),
    [
        ({"ldap_group_filter": ("ANALYSTS", "none")}, {"ann"}),
        ({"ldap_group_filter": ("staff",)}, {"ann", "bob"}),
        ({"ldap_user_filter": ("Bob",)}, {"bob"}),
        ({"ldap_user_filter": ("bob",), "ldap_group_filter": ("analysts",)}, set()),
        ({"ldap_custom_query": "(&(objectClass=inetOrgPerson)(uid=bob))"}, {"bob"}),
        ({"ldap_custom_query": "(&(objectClass=groupOfNames)(cn=analysts))"}, {"ann"}),
        ({"ldap_group_dn_pattern": f"cn=%s,ou=groups,{SUFFIX}", "ldap_group_filter": ("staff",)}, {"ann", "bob"}),
        ({"ldap_group_dn_pattern": f"cn=%s,ou=nowhere,{SUFFIX}", "ldap_group_filter": ("staff",)}, set()),
        ({"ldap_user_membership_key": "memberOf", "ldap_group_filter": ("staff",)}, set()),
    ],
)
@pytest.mark.parametrize("account", [BASE, SEARCHING])
def test_filters_accept_the_users_that_they_name(
    directory: Directory, account: dict[str, str], settings: dict[str, Any], admitted: set[str]
) -> None:
    checked = Ldap(Config(ldap_url=(directory.url,), **account, **settings))
    assert {name for name in ("ann", "bob") if checked.check(name, PASSWORD, ANYTIME) is not None} == admitted


@pytest.mark.parametrize("account", [BASE, SEARCHING])
def test_connections_are_encrypted_and_the_directory_must_prove_itself(directory: Directory, account: dict[str, str]) -> None:
    for settings in ({"ldap_url": (directory.secure_url,)}, {"ldap_url": (directory.url,), "ldap_start_tls": True}):
        trusting = Ldap(Config(ldap_ca=str(directory.ca), **account, **settings))  # type: ignore[arg-type]
        assert trusting.check("ann", PASSWORD, ANYTIME) is not None
        with pytest.raises(ClientRefused, match="gives no answer"):
            Ldap(Config(**account, **settings)).check("ann", PASSWORD, ANYTIME)  # type: ignore[arg-type]


@pytest.mark.parametrize("start_tls", [False, True])
def test_a_certificate_holds_for_its_names(directory: Directory, start_tls: bool) -> None:
    """A certificate of the same authority for another host is refused. The directory's address here, `127.1`, is not in its certificate."""
    url = directory.url if start_tls else directory.secure_url
    for name, is_in_it in (("127.0.0.1", True), ("localhost", True), ("127.1", False)):
        settings = Config(ldap_url=(url.replace("127.0.0.1", name),), ldap_start_tls=start_tls, ldap_ca=str(directory.ca), **BASE)  # type: ignore[arg-type]
        if is_in_it:
            assert Ldap(settings).check("ann", PASSWORD, ANYTIME) is not None
        else:
            with pytest.raises(ClientRefused, match="gives no answer"):
                Ldap(settings).check("ann", PASSWORD, ANYTIME)


def test_a_directory_that_is_down_is_no_wrong_password(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("ldap3.core.pooling.sleep", slept.append)
    down = "ldap://127.0.0.1:1"
    with pytest.raises(ClientRefused, match="gives no answer"):
        Ldap(Config(ldap_url=(down,), **BASE)).check("ann", PASSWORD, ANYTIME)  # type: ignore[arg-type]
    assert Ldap(Config(ldap_url=(down, directory.url), **BASE)).check("ann", PASSWORD, ANYTIME) is not None, "the next server answers"  # type: ignore[arg-type]
    with pytest.raises(ClientRefused, match="gives no answer"):
        Ldap(Config(ldap_url=(directory.url,), **{**SEARCHING, "ldap_bind_password": "x"})).check("ann", PASSWORD, ANYTIME)  # type: ignore[arg-type]
    assert not any(slept), "who logs in does not wait for what is known"


def test_settings_that_find_nobody_are_refused() -> None:
    with pytest.raises(ConfigError, match="to find users"):
        Ldap(Config(ldap_url=("ldap://127.0.0.1",)))


def test_a_server_lets_in_by_the_directory(directory: Directory, tmp_path: Any) -> None:
    options = {"authentication": "ldap", "ldap_url": directory.url, "hive.metastore.authentication.ldap.groupFilter": "analysts", **BASE}
    with serving(
        "--workers", "1", *(part for name, text in options.items() for part in ("--set", f"{name}={text}")), home=tmp_path
    ) as server:
        with logged_in(server.uri, "ann", PASSWORD) as ann:
            assert ann.call("set_ugi", user_name="ann", group_names=[]) == ["analysts", "staff", "ann"]
        with Speaker(server.uri) as bob:
            assert bob.plain("bob", PASSWORD)[0] == BAD
