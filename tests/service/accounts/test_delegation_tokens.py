"""Delegation tokens on each database: the users who get, renew and cancel them, their validity, and the tokens that other servers store."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from metastore.errors import MetaError, NoSuchObject
from metastore.rules.accounts.delegation_tokens import DelegationToken, read_identifier, read_token
from metastore.service.accounts import delegation_tokens as service
from metastore.service.accounts import foreign_tokens
from metastore.service.call.clock import now_ms
from metastore.service.call.context import Call, Metastore
from metastore.service.call.identity import Login
from metastore.store.accounts import delegation_tokens as store
from metastore.store.accounts.delegation_tokens import StoredToken
from tests.support.catalog.catalog import MetastoreMaker, call_of

pytestmark = pytest.mark.on_one_database

HOUR = 3600_000
DAY = 24 * HOUR
SECURED = {"authentication": ("kerberos", "token"), "kerberos_principal": "hive/_HOST@EXAMPLE.COM"}


def logged_in(metastore: Metastore, user: str, mechanism: str = "kerberos", real_user: str | None = None) -> Call:
    call = call_of(metastore, user=user)
    call.client.login = Login(user, mechanism, real_user=real_user)
    return call


@pytest.fixture
def secured(make_metastore: MetastoreMaker) -> Metastore:
    proxies = {"oozie": {"hosts": "127.0.0.1", "users": "alice"}}
    return make_metastore(**SECURED, proxy_users=proxies, delegation_token_store_users=("hiveserver",))


@pytest.fixture
def alice(secured: Metastore) -> Call:
    return logged_in(secured, "alice")


def near(time: int, expected: int) -> bool:
    return expected - HOUR < time <= expected


def test_a_token_lets_in_its_owner_on_every_server(alice: Call, make_metastore: MetastoreMaker) -> None:
    token = read_token(service.issue(alice, "alice@EXAMPLE.COM", "yarn/rm.example@EXAMPLE.COM"))
    identifier = read_identifier(token.identifier)
    assert (identifier.owner, identifier.renewer, identifier.real_user) == ("alice", "yarn", "")
    assert near(identifier.max_date, now_ms() + 7 * DAY)
    other = make_metastore(**SECURED)
    assert service.find_valid(other, token.identifier) == service.ValidToken(token.password, Login("alice", "token"))


@pytest.mark.parametrize(
    ("login", "reason"),
    [
        (None, "without a login: this connection has none"),
        (Login("alice", "token"), "after a login with such a token: log in by Kerberos or a password"),
    ],
)
def test_only_a_login_of_ones_own_gets_and_renews_tokens(alice: Call, login: Login | None, reason: str) -> None:
    text = service.issue(alice, None, "alice")
    alice.client.login = login
    with pytest.raises(MetaError, match=f"Nobody gets delegation tokens {reason}"):
        service.issue(alice, "alice", "alice")
    with pytest.raises(MetaError, match=f"Nobody renews delegation tokens {reason}"):
        service.renew(alice, text)


def test_a_proxy_user_gets_tokens_of_users_that_it_may_act_for(secured: Metastore) -> None:
    oozie = logged_in(secured, "oozie")
    token = read_token(service.issue(oozie, "alice", ""))
    assert service.find_valid(secured, token.identifier).login == Login("alice", "token", real_user="oozie")
    with pytest.raises(MetaError, match="oozie gets no delegation token of bob: it may not act for bob"):
        service.issue(oozie, "bob", "")
    oozie.client.address = "10.1.2.3:4"
    with pytest.raises(MetaError, match="oozie gets no delegation token of alice"):
        service.issue(oozie, "alice", "")


def test_a_proxy_gets_the_tokens_of_its_user(secured: Metastore) -> None:
    acting = logged_in(secured, "alice", real_user="oozie")
    token = read_token(service.issue(acting, None, ""))
    assert service.find_valid(secured, token.identifier).login == Login("alice", "token", real_user="oozie")
    named = logged_in(secured, "oozie")
    named.client.user = "carol"  # as after a set_ugi that was allowed
    assert read_identifier(read_token(service.issue(named, "carol", "")).identifier).owner == "carol"


def test_a_name_that_no_rule_fits_is_refused(alice: Call) -> None:
    for owner, renewer in (("alice@OTHER", "yarn"), ("alice", "yarn@OTHER")):
        with pytest.raises(MetaError, match="No rule of kerberos_name_rules names the user of"):
            service.issue(alice, owner, renewer)
    with pytest.raises(MetaError, match="at most 256 characters"):
        service.issue(alice, "alice", "y" * 300)


def test_without_kerberos_names_are_taken_as_they_are(make_metastore: MetastoreMaker) -> None:
    call = logged_in(make_metastore(authentication=("ldap", "token")), "alice@example.com", "ldap")
    identifier = read_identifier(read_token(service.issue(call, "alice@example.com", "bob@x/y")).identifier)
    assert (identifier.owner, identifier.renewer) == ("alice@example.com", "bob@x/y")


def test_a_server_that_takes_no_tokens_gives_none(metastore: Metastore) -> None:
    with pytest.raises(MetaError, match="issues no delegation tokens because it accepts none: add token to its setting"):
        service.issue(logged_in(metastore, "alice"), "alice", "")


def test_a_server_whose_own_name_no_rule_fits_gives_tokens(make_metastore: MetastoreMaker) -> None:
    call = logged_in(make_metastore(**SECURED, kerberos_name_rules="RULE:[1:$1]"), "alice")
    assert read_identifier(read_token(service.issue(call, "alice@EXAMPLE.COM", "")).identifier).owner == "alice"


def valid_until(metastore: Metastore, token: DelegationToken) -> int:
    stored = metastore.database.read(lambda session: store.find(session, token.identifier))
    assert stored is not None
    return stored.valid_until


def set_valid_until(metastore: Metastore, token: DelegationToken, until: int) -> None:
    metastore.database.write(lambda session: store.renew(session, token.identifier, until))


def test_a_token_expires_unless_its_renewer_renews_it(secured: Metastore, alice: Call) -> None:
    text = service.issue(alice, "alice", "yarn")
    token = read_token(text)
    assert near(valid_until(secured, token), now_ms() + DAY)
    set_valid_until(secured, token, now_ms() - 1)
    with pytest.raises(MetaError, match="The delegation token of alice has expired: let its renewer yarn renew it"):
        service.find_valid(secured, token.identifier)
    with pytest.raises(MetaError, match="alice can not renew the delegation token of alice: its renewer is yarn"):
        service.renew(alice, text)
    until = service.renew(logged_in(secured, "yarn"), text)
    assert near(until, now_ms() + DAY)
    assert valid_until(secured, token) == until
    assert service.find_valid(secured, token.identifier).login.user == "alice"


def test_a_token_is_not_renewed_beyond_its_end(make_metastore: MetastoreMaker) -> None:
    metastore = make_metastore(authentication=("kerberos", "token"), delegation_token_max_lifetime=60.0)
    call = logged_in(metastore, "alice")
    text = service.issue(call, "alice", "alice")
    last = read_identifier(read_token(text).identifier).max_date
    assert valid_until(metastore, read_token(text)) == last
    assert service.renew(call, text) == last


def test_a_token_that_nobody_renews_says_so(alice: Call) -> None:
    text = service.issue(alice, "alice", None)
    with pytest.raises(MetaError, match="its renewer is nobody"):
        service.renew(alice, text)


def test_a_token_that_the_server_is_to_renew_is_valid_to_its_end(secured: Metastore, alice: Call) -> None:
    token = read_token(service.issue(alice, "alice", "hive/metastore.example@EXAMPLE.COM"))
    assert valid_until(secured, token) == read_identifier(token.identifier).max_date


def test_nothing_is_renewed_without_the_password(secured: Metastore, alice: Call) -> None:
    token = read_token(service.issue(alice, "alice", "yarn"))
    with pytest.raises(MetaError, match="The password of the delegation token of alice is wrong"):
        service.renew(logged_in(secured, "yarn"), DelegationToken(token.identifier, b"guessed").to_text())


@pytest.mark.parametrize("user", ["alice", "yarn"])
def test_owner_and_renewer_cancel_a_token_for_all_servers(
    secured: Metastore, alice: Call, make_metastore: MetastoreMaker, user: str
) -> None:
    text = service.issue(alice, "alice", "yarn")
    for other in (logged_in(secured, "eve"), call_of(secured, user="alice")):
        with pytest.raises(MetaError, match=r"can not cancel the delegation token of alice|log in"):
            service.cancel(other, text)
    service.cancel(logged_in(secured, user, mechanism="token"), text)
    service.cancel(logged_in(secured, user), text)  # once more is not an error
    for metastore in (secured, make_metastore()):
        with pytest.raises(MetaError, match="The delegation token of alice does not exist: it was cancelled or has expired"):
            service.find_valid(metastore, read_token(text).identifier)
    with pytest.raises(MetaError, match="does not exist: it was cancelled"):
        service.renew(logged_in(secured, "yarn"), text)


def test_an_identifier_that_nobody_gave_out_is_refused(secured: Metastore) -> None:
    with pytest.raises(MetaError, match="The delegation token does not exist"):
        service.find_valid(secured, b"made up")


@pytest.mark.parametrize("text", [None, "", "?", "AAAA"])
def test_a_text_that_is_not_a_token_is_refused(alice: Call, text: str | None) -> None:
    for use in (service.renew, service.cancel):
        with pytest.raises(MetaError, match="delegation token"):
            use(alice, text)


def test_only_tokens_past_their_end_are_removed(secured: Metastore, alice: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_BATCH", 2)
    kept = read_token(service.issue(alice, "alice", "yarn"))
    set_valid_until(secured, kept, now_ms() - 1)  # it can still be renewed
    old = [secrets.token_bytes(16) for _ in range(5)]
    for identifier in old:
        ended = StoredToken(b"x", "alice", "", "", now_ms() - 1, now_ms() - 1)
        secured.database.write(lambda session, each=identifier, ended=ended: store.insert(session, each, ended))  # type: ignore[misc]
    assert service.delete_expired(secured) == 5
    assert service.delete_expired(secured) == 0
    found = [secured.database.read(lambda session, each=each: store.find(session, each)) for each in (*old, kept.identifier)]  # type: ignore[misc]
    assert [each is None for each in found] == [True] * 5 + [False]


FOREIGN: list[Callable[[Call], object]] = [
    lambda call: foreign_tokens.add_token(call, "id", "token"),
    lambda call: foreign_tokens.remove_token(call, "id"),
    lambda call: foreign_tokens.get_token(call, "id"),
    foreign_tokens.get_identifiers,
    lambda call: foreign_tokens.add_master_key(call, "key"),
    lambda call: foreign_tokens.update_master_key(call, 1, "key"),
    lambda call: foreign_tokens.remove_master_key(call, 1),
    foreign_tokens.get_master_keys,
]


@pytest.mark.parametrize("use", FOREIGN)
def test_only_users_of_the_setting_see_or_change_stored_tokens_and_keys(
    secured: Metastore, metastore: Metastore, use: Callable[[Call], object]
) -> None:
    for call in (
        call_of(secured, user="hiveserver"),
        logged_in(secured, "alice"),
        logged_in(secured, "hiveserver", mechanism="token"),
        logged_in(metastore, "hiveserver"),
    ):
        with pytest.raises(MetaError, match="may not see or change stored tokens and master keys; see the setting"):
            use(call)


def test_another_server_keeps_its_tokens(secured: Metastore, alice: Call) -> None:
    call = logged_in(secured, "hiveserver")
    service.issue(alice, "alice", "yarn")
    assert foreign_tokens.get_identifiers(call) == []
    assert foreign_tokens.add_token(call, "i" * 2000, "one")
    assert not foreign_tokens.add_token(call, "i" * 2000, "two")
    assert foreign_tokens.get_token(call, "i" * 2000) == "one"
    assert foreign_tokens.get_token(call, "other") == ""
    assert foreign_tokens.get_identifiers(call) == ["i" * 2000]
    assert [foreign_tokens.remove_token(call, "i" * 2000) for _ in range(2)] == [True, False]
    with pytest.raises(MetaError, match="needs a text"):
        foreign_tokens.add_token(call, "i", "")


def test_another_server_keeps_its_master_keys(secured: Metastore) -> None:
    call = logged_in(secured, "hiveserver")
    first, second = foreign_tokens.add_master_key(call, "one"), foreign_tokens.add_master_key(call, "two")
    assert first < second
    foreign_tokens.update_master_key(call, first, "uno")
    assert foreign_tokens.get_master_keys(call) == ["uno", "two"]
    foreign_tokens.update_master_key(call, first, "uno")  # the same again
    assert [foreign_tokens.remove_master_key(call, first) for _ in range(2)] == [True, False]
    with pytest.raises(NoSuchObject, match=f"No key found with keyId: {first}"):
        foreign_tokens.update_master_key(call, first, "eins")
    assert foreign_tokens.add_master_key(call, "three") > second
