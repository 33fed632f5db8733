"""Start a Kerberos realm: an MIT KDC on loopback, with principals, keytabs and ticket caches in one folder. Nothing outside of it changes.

Needs `krb5kdc`, `kdb5_util`, `kadmin.local` and `kinit` (packages krb5-kdc, krb5-admin-server, krb5-user), and no root.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from k5test.realm import MITRealm

from tests.support.servers.servers import free_port

REALM = "TEST.EXAMPLE"
SERVICE = f"hive/localhost@{REALM}"
LOCAL = {"libdefaults": {"dns_canonicalize_hostname": "false", "rdns": "false", "dns_lookup_realm": "false"}}
"""Settings of krb5.conf: names of hosts are used as given."""
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


class Kdc:
    """A realm whose KDC answers. Principals have random keys, which only keytabs hold."""

    def __init__(self, realm: MITRealm) -> None:
        self._realm = realm
        self.folder = Path(realm.tmpdir)

    @property
    def configuration(self) -> Path:
        """The krb5.conf, for Java's `java.security.krb5.conf` too."""
        return self.folder / "krb5.conf"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a process of the realm; it has no ticket yet."""
        return {"KRB5_CONFIG": str(self.configuration), "KRB5RCACHEDIR": str(self.folder), "KRB5CCNAME": f"FILE:{self.folder}/no-cache"}

    def keytab(self, principal: str, *, name: str | None = None, new_key: bool = False) -> Path:
        """Add a principal that is not there and return a keytab with its key; `new_key` changes the key."""
        path = self.folder / f"{name or principal.split('@', maxsplit=1)[0].replace('/', '-')}.keytab"
        if principal.encode() not in self._realm.run_kadminl("listprincs"):
            self._realm.addprinc(principal)
        if new_key:
            self._realm.change_password(principal)
        self._realm.extract_keytab(principal, str(path))
        return path

    def tickets(self, principal: str, *, lifetime: str = "1h", name: str = "") -> str:
        """Log a principal in and return its cache of tickets, as KRB5CCNAME names it."""
        cache = f"FILE:{self.folder}/{principal.split('@', maxsplit=1)[0].replace('/', '-')}{name}.tickets"
        flags = ["-k", "-t", str(self.keytab(principal)), "-c", cache, "-l", lifetime]
        self._realm.kinit(principal, flags=flags)
        return cache

    def trust(self, other: Kdc, krbtgt: str, password: str) -> Path:
        """Add a ticket-granting principal to both realms, so that users of one can log in to the other; return a krb5.conf with both."""
        for each in (self, other):
            each._realm.addprinc(krbtgt, password)
        addresses = [{"kdc": f"127.0.0.1:{each._realm.portbase}"} for each in (self, other)]
        realms = dict(zip((self._realm.realm, other._realm.realm), addresses, strict=True))
        self._realm.special_env("trusting", has_kdc_conf=False, krb5_conf={"realms": realms, **LOCAL})
        return self.folder / "krb5.conf.trusting"

    def configured(self, name: str, **libdefaults: str) -> Path:
        """Write another krb5.conf of the realm, with further defaults."""
        conf = {"libdefaults": {**LOCAL["libdefaults"], **libdefaults}, "realms": {"$realm": {"kdc": f"127.0.0.1:{self._realm.portbase}"}}}
        self._realm.special_env(name, has_kdc_conf=False, krb5_conf=conf)
        return self.folder / f"krb5.conf.{name}"


@contextmanager
def realm(name: str = REALM) -> Iterator[Kdc]:
    """Yield a realm with a running KDC, or skip where its programs are missing."""
    missing = [each for each in PROGRAMS if shutil.which(each, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: they are in the packages krb5-kdc, krb5-admin-server and krb5-user")
    port = free_port()
    made = MITRealm(
        realm=name, portbase=port, create_user=False, create_host=False, get_creds=False,
        krb5_conf={
            **LOCAL,
            "realms": {"$realm": {"kdc": f"127.0.0.1:{port}", "admin_server": "127.0.0.1:$port1", "kpasswd_server": "127.0.0.1:$port2"}},
            "domain_realm": {"localhost": "$realm", ".localhost": "$realm"},
        },
        kdc_conf={"realms": {"$realm": {
            "kdc_listen": f"127.0.0.1:{port}", "kdc_tcp_listen": f"127.0.0.1:{port}", "kdc_ports": None, "kdc_tcp_ports": None,
        }}},
    )  # fmt: skip
    try:
        yield Kdc(made)
    finally:
        made.stop()
