"""A server that accepts logins by Kerberos and by token, and its clients."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from metastore import idl
from metastore.client import Client, connect
from metastore.client_login.kerberos import Kerberos
from metastore.client_login.token import Token
from tests.support.logins.kdc import REALM, SERVICE, Kdc
from tests.support.servers.servers import Server, free_port, serving

ALICE, OOZIE, HIVE_SERVER = (f"{user}@{REALM}" for user in ("alice", "oozie", "hiveserver"))
PROTECTIONS = ("authentication", "integrity", "privacy")


class Secured:
    """The server's settings and keytab: it starts the server, and clients that log in."""

    def __init__(self, kdc: Kdc, home: Path) -> None:
        self.kdc = kdc
        self.home = home
        self.keytab = home / "server.keytab"
        home.mkdir()
        shutil.copy(kdc.keytab(SERVICE), self.keytab)
        self.port = free_port()
        self.uri = f"thrift://localhost:{self.port}"

    def settings(self, **more: str) -> list[str]:
        settings = {
            "port": self.port,
            "workers": 2,
            "authentication": "kerberos,token",
            "hive.metastore.kerberos.principal": SERVICE,
            "hive.metastore.kerberos.keytab.file": self.keytab,
            "hadoop.rpc.protection": ",".join(PROTECTIONS),
            "hadoop.proxyuser.oozie.hosts": "127.0.0.1",
            "hadoop.proxyuser.oozie.users": "alice",
            "delegation_token_store_users": "hiveserver",
            **more,
        }
        return [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]

    def serve(self, **more: str) -> AbstractContextManager[Server]:
        return serving(*self.settings(**more), home=self.home, variables=self.kdc.variables)

    def kerberos(self, user: str = ALICE, **options: Any) -> Client:
        login = Kerberos(**{"cache": self.kdc.tickets(user), "principal": f"hive/_HOST@{REALM}", **options})
        return connect(self.uri, login=login, timeout=30)

    def token(self, text: str, **options: Any) -> Client:
        return connect(self.uri, login=Token(text, **options), timeout=30)

    def token_of(self, user: str) -> str:
        """Log a user of the realm in by Kerberos and return a token of theirs."""
        with self.kerberos(f"{user}@{REALM}") as client:
            text: str = client.get_delegation_token(user, user)
            return text

    def rights(self, kind: str, table: str, privileges: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a server on which users hold privileges on a table of `default`; alice is an admin.

        For the kind `grants`, call `grant` when the table is there.
        """
        settings = {"authorization": kind, "admin_users": "alice"}
        if kind == "file":
            rules = [{"user": user, "table": table, "privileges": [privilege]} for user, privilege in privileges.items()]
            file = self.home / "rules.json"
            file.write_text(json.dumps({"tables": rules}))
            settings["authorization_file"] = str(file)
        return settings


def grant(client: Client, table: str, privileges: Mapping[str, str]) -> None:
    """Grant users privileges on a table of `default`."""
    ref = idl.HiveObjectRef(objectType=idl.HiveObjectType.TABLE, dbName="default", objectName=table)
    user = idl.PrincipalType.USER
    client.grant_privileges(
        idl.PrivilegeBag(
            privileges=[
                idl.HiveObjectPrivilege(
                    hiveObject=ref, principalName=name, principalType=user, authorizer="SQL",
                    grantInfo=idl.PrivilegeGrantInfo(privilege=privilege, grantor="alice", grantorType=user, grantOption=False),
                )
                for name, privilege in privileges.items()
            ]
        )
    )  # fmt: skip
