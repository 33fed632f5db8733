"""Privileges: grant, revoke, refresh, list. They are kept for clients that ask, such as Trino, and for the authorizer `grants`.

Nothing is enforced here. Source: Hive's HMSHandler and ObjectStore.grantPrivileges, revokePrivileges, refreshPrivileges.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

from metastore.errors import InvalidObject, MetaError, NoSuchObject
from metastore.idl import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Table,
)
from metastore.rules.names import normalize
from metastore.service.accounts.roles import PUBLIC, held_in_hierarchy
from metastore.service.call.context import Call
from metastore.service.call.names import database_name, table_name
from metastore.service.catalog.partitions.partitions import partition_name
from metastore.service.catalog.privilege_sets import Grantee, privilege_set
from metastore.store.accounts import roles
from metastore.store.authorization import privileges
from metastore.store.authorization.privileges import GLOBAL, PrivilegeObject, StoredPrivilege
from metastore.store.catalog import databases
from metastore.store.catalog.partitions import partitions
from metastore.store.catalog.tables import tables
from metastore.store.core.database import Session
from metastore.store.engines import data_connectors

FindKey = Callable[..., int | None]


def _object(call: Call, session: Session, ref: HiveObjectRef | None, *, locked: bool = True) -> PrivilegeObject:
    """Lock the database or table of an object against removal, and return the object's keys. NoSuchObject, MetaError."""
    if ref is None or ref.objectType is None:
        raise MetaError("A privilege needs an object: set hiveObject and its objectType")
    kind = ref.objectType
    if kind == HiveObjectType.GLOBAL:
        return GLOBAL
    if kind == HiveObjectType.DATABASE:
        catalog, name = database_name(ref.dbName, ref.catName, call.config.default_catalog)
        key = None if name is None else databases.share(session, catalog, name)
        if key is None:
            raise NoSuchObject(f"Database {catalog}.{name} does not exist")
        return PrivilegeObject(kind, database_id=key)
    if kind == HiveObjectType.DATACONNECTOR:
        if ref.objectName is None:
            raise MetaError("A privilege on a data connector needs its name: set objectName")
        connector = normalize(ref.objectName)
        if data_connectors.find(session, connector, locked=locked) is None:
            raise NoSuchObject(f"There is no data connector {connector}")
        return PrivilegeObject(kind, connector_name=connector)
    if kind not in (HiveObjectType.TABLE, HiveObjectType.PARTITION, HiveObjectType.COLUMN):
        raise MetaError(f"Privileges on objects of type {kind} are not supported")
    where = table_name(ref.dbName, ref.objectName, ref.catName, call.config.default_catalog)
    find_key: FindKey = tables.share if locked else tables.key
    key = find_key(session, *where)
    if key is None:
        raise NoSuchObject(f"Table {where} does not exist")
    partition = None
    if kind == HiveObjectType.PARTITION or (kind == HiveObjectType.COLUMN and ref.partValues):
        partition = _partition_key(call, session, where, ref)
    column = None
    if kind == HiveObjectType.COLUMN:
        column = None if ref.columnName is None else normalize(ref.columnName)
    return PrivilegeObject(kind, table_id=key, partition_id=partition, column_name=column)


def _partition_key(call: Call, session: Session, where: tuple[str, str, str], ref: HiveObjectRef) -> int:
    table = tables.find(session, *where)
    assert table is not None
    found = partitions.named(session, table, [partition_name(call, table, ref.partValues)])
    if not found:
        raise NoSuchObject(f"Partition [{', '.join(ref.partValues or ())}] of {'.'.join(where)} does not exist")
    return found[0][0]


def _each(bag: PrivilegeBag | None) -> Iterator[HiveObjectPrivilege]:
    """Yield the privileges of a bag one by one: a grant may name several, with commas."""
    for each in (bag.privileges if bag is not None else None) or ():
        if not each.principalName or each.principalType is None or each.grantInfo is None or not each.grantInfo.privilege:
            raise MetaError("A privilege needs principalName, principalType and grantInfo.privilege")
        for name in each.grantInfo.privilege.split(","):
            single = copy(each)
            if each.principalType == PrincipalType.ROLE:
                single.principalName = normalize(each.principalName)
            single.grantInfo = copy(each.grantInfo)
            single.grantInfo.privilege = name.strip()
            single.grantInfo.createTime = _time_of(each.grantInfo)
            yield single


def _time_of(info: PrivilegeGrantInfo) -> int:
    """Return the time of a grant: now if the client sends none, or -1, as HiveServer2 does for owners."""
    return info.createTime if info.createTime is not None and info.createTime > 0 else int(time.time())


def grant(call: Call, bag: PrivilegeBag | None) -> None:
    """Grant all privileges of a bag or none. NoSuchObject; InvalidObject when the same grantor granted one already."""
    wanted = list(_each(bag))

    def work(session: Session) -> None:
        roles.lock(session, PUBLIC)
        privileges.insert(session, list(_new(call, session, wanted)))

    if wanted:
        call.database.write(work)


def _new(call: Call, session: Session, wanted: Sequence[HiveObjectPrivilege]) -> Iterator[tuple[PrivilegeObject, HiveObjectPrivilege]]:
    """Yield the privileges to store with their object; refuse existing ones. The caller holds the turn."""
    there: dict[PrivilegeObject, set[tuple[Any, ...]]] = {}
    for each in wanted:
        if each.principalType == PrincipalType.ROLE and not roles.lock(session, each.principalName):
            raise NoSuchObject(f"Role {each.principalName} does not exist")
        thing = _object(call, session, each.hiveObject)
        if thing not in there:
            there[thing] = {_identity(granted.privilege) for granted in privileges.on(session, thing)}
        if _identity(each) in there[thing]:
            raise InvalidObject(
                f"{each.grantInfo.privilege} is already granted to {each.principalName} on {_text(each.hiveObject)} "
                f"by {each.grantInfo.grantor}"
            )
        there[thing].add(_identity(each))
        yield thing, each


def grant_with_table(session: Session, table: Table, granted: PrincipalPrivilegeSet) -> None:
    """Store the privileges that a client gives together with a new table, as HiveServer2 does for its owner."""
    thing = PrivilegeObject(HiveObjectType.TABLE, table_id=table.id)
    new = [
        (thing, HiveObjectPrivilege(principalName=name, principalType=kind, grantInfo=_timed(info), authorizer="SQL"))
        for kind, by_name in (
            (PrincipalType.USER, granted.userPrivileges),
            (PrincipalType.GROUP, granted.groupPrivileges),
            (PrincipalType.ROLE, granted.rolePrivileges),
        )
        for name, infos in (by_name or {}).items()
        for info in infos
        if info.privilege
    ]
    if new:
        privileges.insert(session, new)


def _timed(info: PrivilegeGrantInfo) -> PrivilegeGrantInfo:
    info = copy(info)
    info.createTime = _time_of(info)
    return info


def _identity(each: HiveObjectPrivilege) -> tuple[Any, ...]:
    info = each.grantInfo
    return each.principalName, each.principalType, info.privilege.lower(), info.grantor, info.grantorType, each.authorizer


def _text(ref: HiveObjectRef) -> str:
    parts = (ref.dbName, ref.objectName, "/".join(ref.partValues or ()), ref.columnName)
    return ".".join(part for part in parts if part) or "the whole server"


def revoke(call: Call, bag: PrivilegeBag | None, *, option_only: bool = False) -> None:
    """Revoke all privileges of a bag or none, from any grantor; `option_only` revokes the option to grant them on. InvalidObject."""
    wanted = list(_each(bag))

    def work(session: Session) -> None:
        roles.lock(session, PUBLIC)
        keys: list[int] = []
        there: dict[PrivilegeObject, list[StoredPrivilege]] = {}
        for each in wanted:
            thing = _object(call, session, each.hiveObject)
            if thing not in there:
                there[thing] = privileges.on(session, thing)
            found = [
                granted.key
                for granted in there[thing]
                if _identity(granted.privilege)[:3] == _identity(each)[:3] and (granted.privilege.grantInfo.grantOption or not option_only)
            ]
            if not found:
                raise InvalidObject(
                    f"No grant of {each.grantInfo.privilege} to {each.principalName} on {_text(each.hiveObject)}"
                    + (" has the grant option" if option_only else " was found")
                )
            keys += found
        (privileges.take_option if option_only else privileges.delete)(session, keys)

    if wanted:
        call.database.write(work)


def refresh(call: Call, ref: HiveObjectRef, authorizer: str | None, bag: PrivilegeBag | None) -> None:
    """Replace the grants of an authorizer on an object. For a COLUMN without a name these are the grants on all columns. NoSuchObject."""
    wanted = list(_each(bag))

    def work(session: Session) -> None:
        roles.lock(session, PUBLIC)
        thing = _object(call, session, ref)
        if thing.object_type == HiveObjectType.COLUMN and thing.column_name is None:
            old = privileges.find(session, object_type=thing.object_type, table_id=thing.table_id, authorizer=authorizer)
        else:
            old = privileges.on(session, thing, authorizer=authorizer)
        privileges.delete(session, [granted.key for granted in old])
        for each in wanted:
            each.authorizer = authorizer if each.authorizer is None else each.authorizer
        privileges.insert(session, list(_new(call, session, wanted)))

    call.database.write(work)


def list_privileges(call: Call, principal: str | None, kind: int | None, ref: HiveObjectRef | None) -> list[HiveObjectPrivilege]:
    """Return privileges of a principal, of all without one, on an object; on all objects of its type where it has no name.

    An object that is not there has none.
    """

    def work(session: Session) -> list[StoredPrivilege]:
        name = normalize(principal) if principal is not None and kind == PrincipalType.ROLE else principal
        who = {"principal_name": name, "principal_type": None if name is None else kind}
        if ref is None or ref.objectType is None:
            return privileges.find(session, **who)
        named: str | None = ref.dbName if ref.objectType == HiveObjectType.DATABASE else ref.objectName
        if named is None and ref.objectType != HiveObjectType.GLOBAL:
            return privileges.find(session, object_type=ref.objectType, **who)
        try:
            thing = _object(call, session, ref, locked=False)
        except NoSuchObject:
            return []
        if thing.object_type == HiveObjectType.COLUMN and thing.column_name is None:
            return privileges.find(session, object_type=thing.object_type, table_id=thing.table_id, **who)
        return privileges.on(session, thing, **who)

    return [granted.privilege for granted in call.database.read(work)]


def get_privilege_set(call: Call, ref: HiveObjectRef | None, user: str | None, groups: Sequence[str] | None) -> PrincipalPrivilegeSet:
    """Return the grants to a user, its groups and all their roles on an object: none on a missing one.

    NoSuchObject for a missing partition; MetaError.
    """

    def work(session: Session) -> PrincipalPrivilegeSet:
        try:
            found = [granted.privilege for granted in privileges.on(session, _object(call, session, ref, locked=False))]
        except NoSuchObject:
            if ref is not None and ref.partValues:
                raise
            found = []
        grantee = Grantee(user, list(groups or ()))
        return privilege_set(found, grantee, held_in_hierarchy(session, user, list(grantee.groups)))

    return call.database.read(work)
