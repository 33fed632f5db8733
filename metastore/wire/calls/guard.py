"""Run a handler with the caller's rights: ask the authorizer first, replace hidden names, remove hidden objects from the reply.

Where a request names an object that the caller may not see, its handler gets a name that no object has, and answers as for a missing
object. The caller's name is then put back into the answer. This module never decides about rights: see `service.authorization`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from thriftpy2.thrift import TException, TPayload

from metastore import errors
from metastore.methods.forms.rules import Handler, Late, MethodRule
from metastore.service.authorization.decision import Decision, Want
from metastore.service.authorizer import SEE, TABLE, Access, Authorizer, Who, owner_of
from metastore.service.call.context import Call

_MARK = "Hidden_"
"""The beginning of the names that replace hidden ones. Its capital shows whether a handler has normalised the name."""


class Guard:
    """Runs the handlers of a process for callers with limited privileges."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def run(self, rule: MethodRule, handler: Handler, call: Call, args: Any) -> Any:
        """Return the part of a handler's value that the caller may see. Raises as the handler does, and MetaException for a refusal."""
        if rule.fill is not None:
            rule.fill(Decision(call, self._authorizer, rule.operation), args)
        try:
            if rule.late is not None:
                shown, value = self._late(rule.late, call, handler, args)
                if shown:
                    return value
            return self._judged(rule, Decision(call, self._authorizer, rule.operation), handler, args)
        finally:
            if rule.renews:
                self._authorizer.renew()

    def _late(self, table_of: Late, call: Call, handler: Handler, args: Any) -> tuple[bool, Any]:
        """Run a handler that only reads a table; return whether its value may be shown, by the owner and kind of table in it."""
        try:
            value = handler(call, args)
        except errors.MissingArgument:
            raise
        except errors.MetastoreError:
            return False, None
        table = table_of(args, value)
        if table is None:
            return False, None
        asked = Access(SEE, TABLE, table.catName, table.dbName, table.tableName, owner=owner_of(table.owner, table.ownerType), key=table.id)
        return self._authorizer.allowed(Who(call.client.user, tuple(call.client.groups)), (asked,))[0] is True, value

    def _judged(self, rule: MethodRule, decision: Decision, handler: Handler, args: Any) -> Any:
        wants = [want for ask in rule.asks for want in ask.find(decision.call, args)]
        try:
            hidden = decision.judge(wants)
        except errors.PermissionDenied:
            decision.call.refused = True
            raise
        decision.call.refused = bool(hidden)
        names = _hide(hidden)
        if hidden and (left := _left(rule, decision.call, args, [want for want, _, _ in hidden])):
            raise decision.refusal(left)
        try:
            value = handler(decision.call, args) if rule.around is None else rule.around(decision, args, handler)
            if rule.keep is not None:
                value = rule.keep(decision, args, value)
        except (errors.MetastoreError, TException) as error:
            if names:
                _put_back_in(error, names)
            raise
        return _put_back(value, names) if names else value


def _left(rule: MethodRule, call: Call, args: Any, hidden: list[Want]) -> Want | None:
    """Return a hidden object that a request still names, else None: an entry that can not hide an object refuses the request."""
    still = {want[1:5] for ask in rule.asks for want in ask.find(call, args)}
    return next((want for want in hidden if want[1:5] in still), None)


def _hide(hidden: list[tuple[Want, bool, bool]]) -> dict[str, str]:
    """Put other names into the request. Return the replaced ones: as sent under the other name, normalised under its lower case."""
    names: dict[str, str] = {}
    for want, hides_database, hides_name in hidden:
        database, inner = (f"{_MARK}{secrets.token_hex(8)}" if is_hidden else None for is_hidden in (hides_database, hides_name))
        sent = want.hide(database, inner)
        known = (want.database, want.name if want.name is not None else want.catalog)
        for other, spelt, name in zip((database, inner), sent, known, strict=True):
            if other is not None:
                names[other.lower()] = name or ""
                names[other] = names[other.lower()] if spelt is None else spelt
    return names


def _text(text: str, names: Mapping[str, str]) -> str:
    for other, name in names.items():
        text = text.replace(other, name)
    return text


def _put_back_in(error: Exception, names: Mapping[str, str]) -> None:
    message = getattr(error, "message", None)
    if isinstance(message, str):
        error.message = _text(message, names)  # type: ignore[attr-defined]  # it has one
        error.args = tuple(_text(each, names) if isinstance(each, str) else each for each in error.args)


def _put_back(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with the names that the request had."""
    if isinstance(value, str):
        return _text(value, names)
    if isinstance(value, list | tuple | set):
        return type(value)(_put_back(each, names) for each in value)
    if isinstance(value, dict):
        return {_put_back(key, names): _put_back(each, names) for key, each in value.items()}
    if isinstance(value, TPayload):
        for name, each in vars(value).items():
            setattr(value, name, _put_back(each, names))
    return value
