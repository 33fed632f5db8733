"""Find the tables that a parsed statement names, with their places in its text. This module looks up none of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from metastore.spark.dialect.jvm import Doors, Node, items, kind, member, names_of, pair, span

_AROUND = ("Sample", "RelationTimeTravel")
"""Nodes between a table and its alias."""
_CHANGES = ("UpdateTable", "DeleteFromTable", "MergeIntoTable")


@dataclass(frozen=True)
class Relation:
    """A table, or view, that a statement reads."""

    names: tuple[str, ...]
    start: int
    end: int
    has_alias: bool
    is_travelled: bool
    """Whether the statement asks for an earlier state, as by VERSION AS OF."""


def relations(doors: Doors, plan: Node) -> list[Relation]:
    """Return the relations that a statement reads, each place of its text once; the target of a change is not read."""
    found = {each.start: each for each in _below(doors, plan, frozenset())}
    return [found[start] for start in sorted(found)]


def _below(doors: Doors, node: Node, scope: frozenset[str], *, alias: bool = False, travelled: bool = False) -> Iterator[Relation]:
    """Yield the relations below a node; `scope` holds the names of common table expressions."""
    name = kind(node)
    if name == "UnresolvedRelation":
        parts = names_of(node.multipartIdentifier())
        if len(parts) > 1 or parts[0].lower() not in scope:
            yield Relation(tuple(parts), *span(node), alias, travelled)
        return
    if name == "UnresolvedWith":
        yield from _of_with(doors, node, scope)
        return
    if name == "ExplainCommand":
        yield from _below(doors, node.logicalPlan(), scope)
    elif name == "DescribeQueryCommand":
        yield from _below(doors, node.plan(), scope)
    elif name == "RelationTimeTravel":
        yield from _below(doors, node.relation(), scope, alias=alias, travelled=True)
    children = [] if name in _CHANGES[:2] else [node.sourceTable()] if name == "MergeIntoTable" else items(node.children())
    for child in children:
        yield from _below(doors, child, scope, alias=name == "SubqueryAlias" or (alias and name in _AROUND))
    for plan in doors.subqueries(node):
        yield from _below(doors, plan, scope)


def _of_with(doors: Doors, node: Node, scope: frozenset[str]) -> Iterator[Relation]:
    is_recursive = bool(member(node, "allowRecursion"))
    inner = scope
    for relation in items(node.cteRelations()):
        name_of, query = pair(relation)
        name = frozenset({str(name_of).lower()})
        yield from _below(doors, query, inner | name if is_recursive else inner)
        inner |= name
    yield from _below(doors, node.child(), inner)


def target(node: Node) -> tuple[list[str], str] | None:
    """Return the name of the table that a change or insert writes, and its name in expressions; None for another statement."""
    name = kind(node)
    relation = node.targetTable() if name == "MergeIntoTable" else node.table()
    alias = None
    if kind(relation) == "SubqueryAlias":
        alias, relation = str(relation.identifier().name()), relation.child()
    if kind(relation) != "UnresolvedRelation":
        return None
    parts = names_of(relation.multipartIdentifier())
    return parts, alias or parts[-1]


def is_change(node: Node) -> bool:
    """Return whether a statement updates, deletes or merges."""
    return kind(node) in _CHANGES
