"""Parse filter strings.

Source: Hive's Filter.g (2.3, 3.1), PartitionFilter.g4 and PartFilterVisitor (4.x), one grammar for all of them:

    or          := and ("or" and)*
    and         := term ("and" term)*
    term        := "(" or ")" | condition
    condition   := key operator constant | constant operator key | key ["not"] "between" constant "and" constant
                 | key ["not"] "like" constant
                 | "(" key ")" ["not"] "in" "(" constant, .. ")" | key ["not"] "in" "(" constant, .. ")"
                 | "(" "struct" "(" key, .. ")" ")" ["not"] "in" "(" ["const"] "struct" "(" constant, .. ")", .. ")"

Beyond Hive's grammars: `<=>`, `not like`, `true` and `false`, decimals, and bare keys that are not words, if they are passed.
Open parentheses are kept in a list, so no filter exhausts Python's stack. Keys are not looked up here.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from metastore.errors import MetaError
from metastore.rules.filters import lexer
from metastore.rules.filters.nodes import And, Between, Comparison, In, Node, Or
from metastore.rules.values.comparable import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from metastore.rules.filters.lexer import Token

MAXIMUM_NESTING = 100
"""Alternations of and/or below each other, not parentheses: a chain of one kind is flat however it is nested."""

_OPERATORS = {"=": "=", "==": "=", "<=>": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CACHED_LENGTH = 5_000


def parse(text: str | None, keys: Sequence[str] = ()) -> Node | None:
    """Return the tree of a filter string, None when it is empty. `keys` are the table's, which may be unquoted in it.

    MetaError "Error parsing partition filter: .." when it can not be read or is nested too deeply.
    """
    if text is None or not text.strip():
        return None
    return _parse_cached(text, tuple(keys)) if len(text) <= _CACHED_LENGTH else _parse(text, tuple(keys))


def _parse(text: str, keys: tuple[str, ...]) -> Node:
    try:
        return _Parser(text, keys).parse()
    except MetaError:
        if "\\" not in text:
            raise
        with contextlib.suppress(MetaError):
            return _Parser(text, keys, escapes=False).parse()
        raise


_parse_cached = lru_cache(maxsize=512)(_parse)


@dataclass(slots=True)
class _Chain:
    """An And or Or that may still grow; `depth` counts the chains below each other."""

    kind: type[And | Or]
    children: deque[Node]
    depth: int

    def close(self) -> Node:
        return self.kind(tuple(self.children))


_Part = Node | _Chain


class _Level:
    """The content of one pair of parentheses: alternatives, each a list of conjuncts."""

    def __init__(self) -> None:
        self.alternatives: list[list[_Part]] = [[]]


def _combine(kind: type[And | Or], parts: Sequence[_Part]) -> _Part:
    """Join parts under one chain. The longest of its own kind absorbs the others, so deep nesting costs linear time."""
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part.children) if isinstance(part, _Chain) and part.kind is kind else 0 for part in parts]
    base = max(range(len(parts)), key=lengths.__getitem__)
    longest = parts[base]
    chain = longest if lengths[base] and isinstance(longest, _Chain) else _Chain(kind, deque(), 1)
    if chain is not longest:
        base = -1
    before = [child for part in parts[: max(base, 0)] for child in _children(part, chain)]
    chain.children.extendleft(reversed(before))
    for part in parts[base + 1 :]:
        chain.children.extend(_children(part, chain))
    return chain


def _children(part: _Part, chain: _Chain) -> Iterable[Node]:
    """Return the children that `part` adds to a chain: its own when they are of one kind, else itself."""
    if not isinstance(part, _Chain):
        return (part,)
    if part.kind is chain.kind:
        chain.depth = max(chain.depth, part.depth)
        return part.children
    chain.depth = max(chain.depth, part.depth + 1)
    return (part.close(),)


def _closed(part: _Part) -> Node:
    return part.close() if isinstance(part, _Chain) else part


class _Parser:
    def __init__(self, text: str, keys: tuple[str, ...], *, escapes: bool = True) -> None:
        self.text = text
        self.keys = frozenset(key.lower() for key in keys)
        self.tokens = lexer.tokens(text, lexer.names_of(keys), escapes=escapes)
        self.position = 0

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.peek()
        self.position += 1
        return token

    def fail(self, token: Token, wanted: str) -> MetaError:
        found = f"'{token.text}'" if token.kind != "end" else "the end"
        return lexer.error(self.text, f"expected {wanted} at position {token.position}, found {found}")

    def expect(self, keyword: str) -> None:
        token = self.take()
        if token.keyword != keyword:
            raise self.fail(token, f"'{keyword}'")

    def accept(self, keyword: str) -> bool:
        if self.peek().keyword == keyword:
            self.position += 1
            return True
        return False

    def parse(self) -> Node:
        levels = [_Level()]
        while True:
            if self.peek().keyword == "(" and not self.opens_membership():
                self.take()
                levels.append(_Level())
                continue
            levels[-1].alternatives[-1].append(self.condition())
            while self.peek().keyword == ")" and len(levels) > 1:
                self.take()
                inside = self.close(levels.pop())
                levels[-1].alternatives[-1].append(inside)
            token = self.take()
            if token.kind == "end" and len(levels) == 1:
                return _closed(self.close(levels[0]))
            if token.keyword == "or":
                levels[-1].alternatives.append([])
            elif token.keyword != "and":
                raise self.fail(token, "'and', 'or' or ')'" if len(levels) > 1 else "'and', 'or' or the end")

    def close(self, level: _Level) -> _Part:
        part = _combine(Or, [_combine(And, conjuncts) for conjuncts in level.alternatives])
        if isinstance(part, _Chain) and part.depth > MAXIMUM_NESTING:
            raise lexer.error(self.text, f"'and' and 'or' are nested more than {MAXIMUM_NESTING} deep")
        return part

    def opens_membership(self) -> bool:
        """Return whether the parenthesis here opens `(key) in` or `(struct(..)) in` instead of a group."""
        if self.peek(1).keyword == "struct" and self.peek(2).keyword == "(":
            return True
        return self.peek(1).kind in {"word", "quoted"} and self.peek(2).keyword == ")" and self.peek(3).keyword in {"in", "not"}

    def condition(self) -> _Part:
        if self.accept("("):
            if self.peek().keyword == "struct" and self.peek(1).keyword == "(":
                return self.struct_membership()
            key = self.key()
            self.expect(")")
            return self.membership(key, negated=self.accept("not"))
        if self.starts_constant():
            start = self.peek()
            value = self.constant()
            operator = self.operator()
            key = self.key()
            if operator == "like":
                raise MetaError(f"Value should be on the RHS for LIKE operator : Key <{key}>")
            if operator not in _MIRRORED:
                raise self.fail(start, "a key")
            return Comparison(key, _MIRRORED[operator], value)
        key = self.key()
        negated = self.accept("not")
        if self.accept("between"):
            low = self.constant()
            self.expect("and")
            return Between(key, low, self.constant(), negated)
        if negated and self.accept("like"):
            return Comparison(key, "not like", self.constant())
        if negated or self.peek().keyword == "in":
            return self.membership(key, negated)
        return Comparison(key, self.operator(), self.constant())

    def key(self) -> str:
        token = self.take()
        if token.kind not in {"word", "quoted"}:
            raise self.fail(token, "a key")
        return token.text

    def operator(self) -> str:
        token = self.take()
        if token.keyword == "like":
            return "like"
        if token.kind != "operator":
            raise self.fail(token, "an operator")
        return _OPERATORS[token.text]

    def starts_constant(self) -> bool:
        token = self.peek()
        if token.keyword in {"date", "timestamp"}:
            return self.peek(1).kind == "string"
        if token.keyword in {"true", "false"}:
            return bool(self.keys) and token.keyword not in self.keys
        return token.kind in {"string", "integer", "decimal", "date", "timestamp"} or token.keyword in {"+", "-"}

    def constant(self) -> Constant:
        token = self.take()
        if token.kind == "string":
            return self.string(token)
        if token.kind == "date":
            return lexer.date_constant(self.text, token, token.text)
        if token.kind == "timestamp":
            return lexer.timestamp_constant(self.text, token, token.text)
        if token.keyword in {"date", "timestamp"} and self.peek().kind == "string":
            literal = self.take()
            read = lexer.date_constant if token.keyword == "date" else lexer.timestamp_constant
            return read(self.text, literal, literal.text[1:-1])
        if token.keyword in {"true", "false"}:
            return token.keyword
        sign = 1
        if token.keyword in {"+", "-"}:
            sign, token = -1 if token.keyword == "-" else 1, self.take()
        if token.kind == "integer" and len(token.text) <= 100:
            return sign * int(token.text)
        if token.kind == "decimal":
            return sign * Decimal(token.text)
        raise self.fail(token, "a constant")

    def string(self, token: Token) -> str:
        """Return a string without its outer quotes; adjacent strings are joined with their inner quotes, as in Hive."""
        written = token.text
        while self.peek().kind == "string":
            written += self.take().text
        return written[1:-1] if written[0] == written[-1] else written

    def constants(self) -> tuple[Constant, ...]:
        self.expect("(")
        values = [self.constant()]
        while self.accept(","):
            values.append(self.constant())
        self.expect(")")
        return tuple(values)

    def membership(self, key: str, negated: bool) -> Node:
        self.expect("in")
        return In(key, self.constants(), negated)

    def struct_membership(self) -> _Part:
        self.expect("struct")
        self.expect("(")
        keys = [self.key()]
        while self.accept(","):
            keys.append(self.key())
        self.expect(")")
        self.expect(")")
        negated = self.accept("not")
        self.expect("in")
        self.expect("(")
        rows = [self.struct(keys, negated)]
        while self.accept(","):
            rows.append(self.struct(keys, negated))
        self.expect(")")
        return _combine(And if negated else Or, rows)

    def struct(self, keys: list[str], negated: bool) -> _Part:
        self.accept("const")
        self.expect("struct")
        values = self.constants()
        if len(values) != len(keys):
            raise lexer.error(self.text, f"Struct key [{', '.join(keys)}] and value {list(values)} sizes do not match.")
        sign = "!=" if negated else "="
        parts = [Comparison(key, sign, value) for key, value in zip(keys, values, strict=True)]
        return _combine(Or if negated else And, parts)
