"""One entry for each method: all that the server knows of it beyond the interface itself. This module never runs a method.

    reads("get_table", handler, rule, replica=True)
    changes("drop_table", handler, rule, metric="delete_total_count_tables")

Dispatch, authorization, audit, replicas, metrics, the shadow and the generated pages use the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from metastore import idl
from metastore.methods.forms.rules import Handler, MethodRule
from metastore.methods.interface.variants import OldRequest, OldResult
from metastore.service.call.releases import Sign

ALL: frozenset[str] = frozenset(idl.service.thrift_services)
"""Every method of the interface, and of fb303."""


class Shadowed(Enum):
    """The cases in which `metastore shadow` sends a method to the secondary too."""

    BY_KIND = ""
    """Always for a method that reads; only with `--send-changes` for one that changes something."""
    AFTER_CHANGES = "with changes"
    """Only with `--send-changes`: for methods that use numbers of transactions or locks, or change the state of a connection or a cache."""
    NEVER = "never"
    """For methods about the server itself, or about secrets that each server makes for itself."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the interface."""

    name: str
    handler: Handler
    rule: MethodRule
    """The privileges that it requires of its caller, and the part of its reply that is shown."""
    changes: bool
    """Whether it changes more than a time or the state of the connection. Such calls are audited, and keep their client off replicas."""
    replica: bool = False
    """Whether a replica may answer: the method reads the catalog, and nothing of transactions."""
    shadowed: Shadowed = Shadowed.BY_KIND
    """The cases in which a shadow sends the method to its secondary too."""
    ordered: bool = False
    """Whether the order of the texts that it returns means something: a shadow compares them one by one."""
    sign: Sign | None = None
    """The sign that its calls give of their client's release."""
    ends_for_4: bool = False
    """Whether the end of the connection is the answer to a missing argument for Hive 4's client, too."""
    metric: str = ""
    """The counter of Hive's metastore for its successful calls, "" for none."""
    dead: str = ""
    """The answer of a method of a dead feature, for the documentation."""
    old_request: OldRequest | None = None
    """Its request as a client of Hive 2.3 sends it, where that differs."""
    old_result: OldResult | None = None
    """Its result as a client of Hive 2.3 reads it, where that differs."""
    old_meta_field: str = ""
    """The field of its result in which a client of Hive 2.3 reads a MetaException, where that differs. Exceptions are one text there."""


reads: Callable[..., Method] = partial(Method, changes=False)
"""Make the entry of a method that changes nothing."""
changes: Callable[..., Method] = partial(Method, changes=True)
"""Make the entry of a method that changes something."""


def of_one_side(*entries: Method) -> tuple[Method, ...]:
    """Return entries of methods that are about the server itself, or about secrets that each server makes for itself."""
    return tuple(replace(each, shadowed=Shadowed.NEVER) for each in entries)


def joined(entries: Iterable[Method]) -> dict[str, Method]:
    """Return entries by name. Raises ValueError for a name that is unknown, there twice, or missing."""
    methods: dict[str, Method] = {}
    for each in entries:
        if each.name not in ALL:
            raise ValueError(f"the interface has no method {each.name}; correct the name")
        if each.name in methods:
            raise ValueError(f"method {each.name} has two entries; keep one")
        methods[each.name] = each
    if missing := sorted(ALL - methods.keys()):
        raise ValueError(f"these methods have no entry: {', '.join(missing)}; write one for each")
    return methods
