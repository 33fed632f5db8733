"""Callers of a metastore in the test's own process; its authorizer decides about their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest

from metastore import idl
from metastore.errors import MetaError
from metastore.methods import METHODS
from metastore.service.call.context import Call, Client, Metastore
from metastore.wire.calls.guard import Guard

USER, ROLE, GROUP = idl.PrincipalType.USER, idl.PrincipalType.ROLE, idl.PrincipalType.GROUP
LOCATION = "OBJECT OWNERSHIP"


class Caller:
    """A connection of one user; every method of the interface is a method of it."""

    def __init__(self, metastore: Metastore, user: str | None, groups: Sequence[str] = ()) -> None:
        self.metastore = metastore
        self._client = Client("127.0.0.1:1", user=user, groups=list(groups))

    def __getattr__(self, method: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            struct = getattr(idl.service, f"{method}_args")()
            names = [field[1] for field in struct.thrift_spec.values()]
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                setattr(struct, name, deepcopy(value))  # the wire makes new objects for each call
            assert self.metastore.authorizer is not None
            guard = Guard(self.metastore.authorizer)
            entry = METHODS[method]
            return guard.run(entry.rule, entry.handler, Call(self.metastore, self._client, method), struct)

        return call


As = Callable[..., Caller]
"""Makes the caller of a user and its groups."""


def table(database: str, name: str, owner: str | None = None, location: str | None = None, keys: Sequence[str] = ()) -> Any:
    """Return a table that can be created."""
    text = [idl.FieldSchema(name=each, type="string") for each in ("a", "b")]
    sd = idl.StorageDescriptor(
        cols=text, location=location, inputFormat="in", outputFormat="out", parameters={}, serdeInfo=idl.SerDeInfo(serializationLib="l")
    )
    return idl.Table(
        dbName=database, tableName=name, owner=owner, sd=sd, parameters={}, tableType="MANAGED_TABLE",
        partitionKeys=[idl.FieldSchema(name=each, type="string") for each in keys],
    )  # fmt: skip


def partition(of: Any, value: str, location: str | None = None) -> Any:
    """Return a partition that can be added to a table."""
    sd = idl.StorageDescriptor(**{**vars(of.sd), "location": location})
    return idl.Partition(dbName=of.dbName, tableName=of.tableName, values=[value], sd=sd, parameters={})


def bag(privilege: str, principal: str, kind: int = USER, *, option: bool = False, **ref: Any) -> Any:
    """Return privileges on a table (dbName, objectName), on a column of it, on a database (dbName) or, without a name, on everything."""
    types = idl.HiveObjectType
    given = types.COLUMN if "columnName" in ref else types.TABLE if "objectName" in ref else types.DATABASE if ref else types.GLOBAL
    info = idl.PrivilegeGrantInfo(privilege=privilege, grantor="root", grantorType=USER, grantOption=option)
    each = idl.HiveObjectPrivilege(
        hiveObject=idl.HiveObjectRef(objectType=given, **ref), principalName=principal, principalType=kind, grantInfo=info, authorizer="SQL"
    )
    return idl.PrivilegeBag(privileges=[each])


def refusal(call: Any, *args: Any) -> str:
    with pytest.raises(MetaError) as caught:
        call(*args)
    return caught.value.message
