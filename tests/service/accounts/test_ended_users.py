"""A user's delegation tokens end when the user's password or key is taken away; on each database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from metastore.errors import InvalidInput, MetaError, NoSuchObject
from metastore.rules.accounts.delegation_tokens import read_identifier, read_token
from metastore.service.accounts import delegation_tokens as service
from metastore.service.accounts import users
from metastore.service.authorizer import Authorizer
from metastore.service.call.context import Call, Metastore
from metastore.service.call.identity import Login
from metastore.service.catalog.catalogs import create_startup_objects
from metastore.store.accounts import credentials
from metastore.store.accounts import delegation_tokens as store
from tests.support.catalog.catalog import MetastoreMaker, call_of

pytestmark = pytest.mark.on_one_database

ANYTIME: AbstractContextManager[None] = nullcontext()
PASSWORD = "correct horse"


@pytest.fixture
def server(make_metastore: MetastoreMaker) -> Metastore:
    proxies = {"oozie": {"hosts": "127.0.0.1", "users": "ann,bob"}}
    made = make_metastore(authentication=("users", "token"), proxy_users=proxies, admin_users=("root",))
    for user in ("ann", "bob", "oozie"):
        users.add(made.database, user, PASSWORD)
    return made


def by_password(metastore: Metastore, user: str, password: str = PASSWORD) -> Call:
    call = call_of(metastore, user=user)
    call.client.login = users.check(metastore, user, password, ANYTIME)
    assert call.client.login is not None
    return call


def owners(metastore: Metastore) -> list[tuple[str, str]]:
    """Return owner and real user of the tokens that are there."""
    return sorted((each.owner, each.real_user) for each in metastore.database.read(lambda session: store.of_users(session, None)))


@pytest.fixture
def four(server: Metastore) -> list[str]:
    """Tokens of ann and bob, one that oozie got for ann, and one that it got for itself."""
    ann, bob, oozie = (by_password(server, user) for user in ("ann", "bob", "oozie"))
    return [service.issue(ann, None, ""), service.issue(bob, None, ""), service.issue(oozie, "ann", ""), service.issue(oozie, None, "")]


def revoke_one(metastore: Metastore, user: str) -> None:
    key = users.add(metastore.database, user, None)
    assert key is not None
    login = users.check(metastore, user, key, ANYTIME)
    assert login is not None
    assert users.revoke(metastore.database, user, login.credential).credentials == 1


@pytest.mark.parametrize(
    "end",
    [
        lambda server, user: users.revoke(server.database, user),
        lambda server, user: users.add(server.database, user, "another password"),
        revoke_one,
        lambda server, user: service.revoke(server.database, user),
    ],
    ids=["revoke", "another password", "revoke a key", "revoke the tokens"],
)
def test_tokens_end_with_the_password_or_key_of_who_got_them(
    server: Metastore, four: list[str], end: Callable[[Metastore, str], object]
) -> None:
    assert owners(server) == [("ann", ""), ("ann", "oozie"), ("bob", ""), ("oozie", "")]
    end(server, "oozie")
    assert owners(server) == [("ann", ""), ("bob", "")]
    end(server, "ann")
    assert owners(server) == [("bob", "")]
    with pytest.raises(MetaError, match="does not exist: it was cancelled"):
        service.find_valid(server, read_token(four[0]).identifier)


def test_a_further_key_ends_no_token(server: Metastore, four: list[str]) -> None:
    users.add(server.database, "ann", None)
    assert len(owners(server)) == len(four)


def test_revoked_credentials_are_counted(server: Metastore, four: list[str]) -> None:
    assert len(four) == 4
    assert users.revoke(server.database, "ann") == users.Revoked(credentials=1, tokens=2)
    with pytest.raises(NoSuchObject, match="User ann has no password or key"):
        users.revoke(server.database, "ann")
    with pytest.raises(NoSuchObject, match="User ann has no delegation token, and got none for others"):
        service.revoke(server.database, "ann")


def test_one_token_is_revoked_by_its_id(server: Metastore, four: list[str]) -> None:
    key = store.key_of(read_token(four[0]).identifier)
    with pytest.raises(NoSuchObject, match=f"User bob has no delegation token {key[:12]}"):
        service.revoke(server.database, "bob", key[:12])
    with pytest.raises(InvalidInput, match="2 delegation tokens of ann begin with : give a longer prefix"):
        service.revoke(server.database, "ann", "")
    assert service.revoke(server.database, "ann", key[:12]) == 1
    assert owners(server) == [("ann", "oozie"), ("bob", ""), ("oozie", "")]


def test_a_revoked_user_gets_no_token_on_an_open_connection(server: Metastore) -> None:
    ann = by_password(server, "ann")
    users.revoke(server.database, "ann")
    with pytest.raises(MetaError, match="The password or key of ann was revoked or has expired"):
        service.issue(ann, None, "")
    assert owners(server) == []


def test_a_token_ends_with_the_key_that_it_came_from(make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_metastore(authentication=("users", "token"), delegation_token_max_lifetime=1e10)
    key = users.add(server.database, "job", None, expires=4_000_000_000)
    assert key is not None
    job = by_password(server, "job", key)
    assert read_identifier(read_token(service.issue(job, None, "job")).identifier).max_date == 4_000_000_000_000
    monkeypatch.setattr(service, "now_ms", lambda: 4_000_000_000_000)
    with pytest.raises(MetaError, match="The password or key of job was revoked or has expired"):
        service.issue(job, None, "job")


class Meanwhile:
    """Starts `act` in another thread after the first call of a function, and waits up to a second for its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]) -> None:
        self._before = getattr(module, name)
        self._act = act
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None
        monkeypatch.setattr(module, name, self._called)

    def _called(self, *args: Any, **options: Any) -> Any:
        found = self._before(*args, **options)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run)
            self._thread.start()
            self._thread.join(1)
        return found

    def _run(self) -> None:
        try:
            self._act()
        except MetaError as error:
            self.error = error

    def wait(self) -> None:
        assert self._thread is not None
        self._thread.join(60)
        assert not self._thread.is_alive()


def test_no_token_outlives_a_revocation_at_the_same_time(
    server: Metastore, make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_metastore()
    ann = by_password(server, "ann")
    revoking = Meanwhile(monkeypatch, credentials, "hold", lambda: users.revoke(other.database, "ann"))
    service.issue(ann, None, "")
    revoking.wait()
    assert revoking.error is None
    assert owners(server) == []


def test_no_token_is_given_out_during_a_revocation(
    server: Metastore, make_metastore: MetastoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_metastore()
    ann = by_password(server, "ann")
    issuing = Meanwhile(monkeypatch, store, "delete_of_user", lambda: service.issue(ann, None, ""))
    users.revoke(other.database, "ann")
    issuing.wait()
    assert issuing.error is not None
    assert owners(server) == []


class Nobody(Authorizer):
    """Allows carl everything, and all other users nothing."""

    def __init__(self, _config: object) -> None:
        pass

    def allowed(self, who: Any, asked: Any) -> list[bool]:
        return [who.user == "carl"] * len(asked)


@pytest.mark.parametrize(
    ("settings", "admin"),
    [
        ({}, "root"),
        ({"authorization": "grants"}, "root"),
        ({"authorization": "tests.service.accounts.test_ended_users:Nobody"}, "carl"),
    ],
)
def test_admins_cancel_any_token(server: Metastore, make_metastore: MetastoreMaker, settings: dict[str, str], admin: str) -> None:
    chosen = make_metastore(authentication=("users", "token"), admin_users=("root",), **settings)
    create_startup_objects(chosen)
    text = service.issue(by_password(server, "ann"), None, "")
    for user in ("bob", "eve"):
        other = call_of(chosen, user=user)
        other.client.login = Login(user, "kerberos")
        with pytest.raises(MetaError, match="only its owner, the user who got it, admins and its renewer can"):
            service.cancel(other, text)
    unproved = call_of(chosen, user=admin)
    with pytest.raises(MetaError, match="Only the owner or renewer of a delegation token, the user who got it, or an admin can cancel it"):
        service.cancel(unproved, text)
    assert owners(server) == [("ann", "")]
    unproved.client.login = Login(admin, "kerberos")
    service.cancel(unproved, text)
    assert owners(server) == []
