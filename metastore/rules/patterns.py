r"""Match any regular expression in time linear in the text.

Clients may send any regular expression as a name pattern or table filter. Java's and Python's backtracking engines
can be made to run for years by one of them, so expressions are compiled to a Thompson automaton whose deterministic
states are made on demand and remembered. This module never uses `re` on an expression from outside.

Known: literals, `.` (any character), `[..]` classes with classes and `&&` in them, `\d \w \s` and their complements, `\xhh`, `\uhhhh`,
`\Q..\E`, groups `(..)` and `(?:..)`, `|`, `* + ? {n} {n,} {n,m}` (lazy and possessive marks are accepted: a full match does not depend
on them), `^` and `$` at the ends of the expression, `(?i)` at its beginning, which Hive 4.1 sends. Everything else (back references,
look-around, other flags) is refused.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import lru_cache

from metastore.errors import MetaError

MAXIMUM_PATTERN_LENGTH = 20_000
MAXIMUM_STATES = 2_000
MAXIMUM_NESTING = 50
MAXIMUM_REMEMBERED = 200_000
"""Sum of the sizes of the remembered state sets of one expression; the memory is emptied when it is passed."""

CharacterTest = Callable[[str], bool]

_WORD = frozenset(string.ascii_letters + string.digits + "_")
_DIGITS = frozenset(string.digits)
_SPACE = frozenset(" \t\n\x0b\f\r")
_IGNORE_CASE = "(?i)"
_HEXADECIMAL = {"x": 2, "u": 4}
"""The number of digits of an escape."""
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


class _Automaton:
    """An automaton, whose states are numbers. A state consumes a character, or leads to others without one."""

    def __init__(self) -> None:
        self.tests: list[CharacterTest | str | None] = []
        self.targets: list[list[int]] = []

    def state(self, test: CharacterTest | str | None = None) -> int:
        if len(self.tests) >= MAXIMUM_STATES:
            raise ValueError("it is too large")
        self.tests.append(test)
        self.targets.append([])
        return len(self.tests) - 1


Fragment = tuple[int, int]
"""First and last state; the last consumes nothing and has no targets yet."""


class _Parser:
    """A parser by recursive descent, which builds the automaton of an expression."""

    def __init__(self, text: str, ignore_case: bool) -> None:
        self.text = text
        self.position = 0
        self.ignore_case = ignore_case
        self.nesting = 0
        self.automaton = _Automaton()

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def take(self) -> str:
        if self.position >= len(self.text):
            raise ValueError("it ends too early")
        self.position += 1
        return self.text[self.position - 1]

    def parse(self) -> Fragment:
        if self.text.startswith(_IGNORE_CASE):
            self.text, self.ignore_case = self.text.removeprefix(_IGNORE_CASE), True
        fragment = self.alternatives(0)
        if self.position < len(self.text):
            raise ValueError(f"unexpected '{self.peek()}' at position {self.position}")
        return fragment

    def empty(self) -> Fragment:
        state = self.automaton.state()
        return state, state

    def single(self, test: CharacterTest | str) -> Fragment:
        if isinstance(test, str) and self.ignore_case and test.swapcase() != test:
            both = frozenset((test.lower(), test.upper()))
            test = both.__contains__
        first, last = self.automaton.state(test), self.automaton.state()
        self.automaton.targets[first].append(last)
        return first, last

    def join(self, left: Fragment, right: Fragment) -> Fragment:
        self.automaton.targets[left[1]].append(right[0])
        return left[0], right[1]

    def alternatives(self, depth: int) -> Fragment:
        if depth > MAXIMUM_NESTING:
            raise ValueError("its groups are nested too deeply")
        branches = [self.sequence(depth)]
        while self.peek() == "|":
            self.take()
            branches.append(self.sequence(depth))
        if len(branches) == 1:
            return branches[0]
        first, last = self.automaton.state(), self.automaton.state()
        for begin, end in branches:
            self.automaton.targets[first].append(begin)
            self.automaton.targets[end].append(last)
        return first, last

    def sequence(self, depth: int) -> Fragment:
        whole = self.empty()
        while self.position < len(self.text) and self.peek() not in "|)":
            whole = self.join(whole, self.repeated(depth))
        return whole

    def repeated(self, depth: int) -> Fragment:
        start = self.position
        atom = self.atom(depth)
        end = self.position
        if (mark := self.peek()) and mark in "*+?{":
            low, high = self.counts()
            if self.peek() and self.peek() in "?+":
                self.take()
            atom = self.repeat(atom, low, high, start, end, depth)
        return atom

    def counts(self) -> tuple[int, int | None]:
        mark = self.take()
        if mark != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[mark]
        inside = ""
        while (character := self.take()) != "}":
            inside += character
        low, comma, high = inside.partition(",")
        if not (low.isdecimal() and low.isascii() and (not high or (high.isdecimal() and high.isascii()))):
            raise ValueError(f"'{{{inside}}}' is not a repetition")
        if max(len(low), len(high)) > 5:
            raise ValueError("it is too large")
        minimum = int(low)
        maximum = minimum if not comma else (int(high) if high else None)
        if maximum is not None and maximum < minimum:
            raise ValueError(f"'{{{inside}}}' is not a repetition")
        return minimum, maximum

    def repeat(self, atom: Fragment, low: int, high: int | None, start: int, end: int, depth: int) -> Fragment:
        """Repeat `atom`, which the text from `start` to `end` made; copies are made by reading that text again."""

        def copy() -> Fragment:
            resume, text = self.position, self.text
            self.position, self.text = start, text[:end]
            made = self.atom(depth)
            self.position, self.text = resume, text
            return made

        targets = self.automaton.targets
        whole = self.empty()
        spare: Fragment | None = atom
        for _ in range(low):
            whole = self.join(whole, spare or copy())
            spare = None
        if high is None:
            first, last = spare or copy()
            inner, outer = self.automaton.state(), self.automaton.state()
            targets[inner] += [first, outer]
            targets[last].append(inner)
            return self.join(whole, (inner, outer))
        done = self.automaton.state()
        for _ in range(high - low):
            targets[whole[1]].append(done)
            whole = self.join(whole, spare or copy())
            spare = None
        targets[whole[1]].append(done)
        return whole[0], done

    def atom(self, depth: int) -> Fragment:
        character = self.take()
        if character == ".":
            return self.single(lambda _: True)
        if character == "(":
            return self.group(depth)
        if character == "[":
            return self.single(self.character_class())
        if character == "\\":
            return self.escaped()
        if character == "^" and self.position == 1:
            return self.empty()
        if character == "$" and self.position == len(self.text):
            return self.empty()
        if character in "*+?{^$":
            raise ValueError(f"unexpected '{character}' at position {self.position - 1}")
        return self.single(character)

    def group(self, depth: int) -> Fragment:
        if self.peek() == "?":
            if self.text[self.position : self.position + 2] != "?:":
                raise ValueError("only plain groups '(..)' and '(?:..)' are supported")
            self.position += 2
        inside = self.alternatives(depth + 1)
        if self.peek() != ")":
            raise ValueError("a group is not closed")
        self.take()
        return inside

    def escaped(self) -> Fragment:
        character = self.take()
        if character == "Q":
            end = self.text.find("\\E", self.position)
            literal = self.text[self.position : end if end >= 0 else None]
            self.position = len(self.text) if end < 0 else end + 2
            whole = self.empty()
            for each in literal:
                whole = self.join(whole, self.single(each))
            return whole
        return self.single(self.escape_test(character))

    def escape_test(self, character: str) -> CharacterTest | str:
        members = {"d": _DIGITS, "w": _WORD, "s": _SPACE}.get(character.lower())
        if members is not None:
            return members.__contains__ if character.islower() else lambda c: c not in members
        if character in _CONTROL:
            return _CONTROL[character]
        if character in _HEXADECIMAL:
            digits = "".join(self.take() for _ in range(_HEXADECIMAL[character]))
            if not set(digits) <= set(string.hexdigits):
                raise ValueError(f"'\\{character}{digits}' is not a character")
            return chr(int(digits, 16))
        if character.isalnum() and character.isascii():
            raise ValueError(f"'\\{character}' is not supported")
        return character

    def character_class(self) -> CharacterTest:
        """Read the rest of a class after `[`: members, other classes among them, and with `&&` the intersection of several sets."""
        self.nesting += 1
        if self.nesting > MAXIMUM_NESTING:
            raise ValueError("its classes are nested too deeply")
        negated = self.peek() == "^"
        if negated:
            self.take()
        sets = [self.members(first=True)]
        while self.text.startswith("&&", self.position):
            self.position += 2
            sets.append(self.members(first=False))
        self.take()
        self.nesting -= 1
        return lambda character: all(each(character) for each in sets) != negated

    def members(self, *, first: bool) -> CharacterTest:
        """Read the members of a class up to its end or the next `&&`; a `]` that comes `first` is a member."""
        tests: list[CharacterTest] = []
        literals: set[str] = set()
        ranges: list[tuple[str, str]] = []
        while first or not self.text.startswith(("]", "&&"), self.position):
            first = False
            member = self.class_member()
            if not isinstance(member, str):
                tests.append(member)
                continue
            if self.peek() == "-" and self.text[self.position + 1 : self.position + 2] not in ("]", ""):
                self.take()
                upper = self.class_member()
                if not isinstance(upper, str) or upper < member:
                    raise ValueError("a class holds a range that runs backwards")
                ranges.append((member, upper))
            else:
                literals.add(member)
        forms: Callable[[str], tuple[str, ...]] = (lambda c: (c, c.lower(), c.upper())) if self.ignore_case else (lambda c: (c,))
        return lambda character: any(
            form in literals or any(low <= form <= high for low, high in ranges) or any(test(form) for test in tests)
            for form in forms(character)
        )

    def class_member(self) -> CharacterTest | str:
        character = self.take()
        if character == "\\":
            return self.escape_test(self.take())
        return self.character_class() if character == "[" else character


class Expression:
    """One compiled expression; call it with a text to learn whether the whole text matches."""

    def __init__(self, text: str, ignore_case: bool) -> None:
        parser = _Parser(text, ignore_case)
        first, self._last = parser.parse()
        self._tests = parser.automaton.tests
        self._targets = parser.automaton.targets
        self._start = self._closure({first})
        self._moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._remembered = 0

    def __call__(self, text: str) -> bool:
        current = self._start
        for character in text:
            following = self._moves.get((current, character))
            if following is None:
                following = self._move(current, character)
            if not following:
                return False
            current = following
        return self._last in current

    def _closure(self, states: set[int]) -> frozenset[int]:
        pending, seen = list(states), set(states)
        while pending:
            state = pending.pop()
            if self._tests[state] is None:
                for target in self._targets[state]:
                    if target not in seen:
                        seen.add(target)
                        pending.append(target)
        return frozenset(s for s in seen if self._tests[s] is not None or s == self._last)

    def _move(self, states: frozenset[int], character: str) -> frozenset[int]:
        reached: set[int] = set()
        for state in states:
            test = self._tests[state]
            if test is not None and (test == character if isinstance(test, str) else test(character)):
                reached.update(self._targets[state])
        following = self._closure(reached)
        self._remembered += len(following) + 1
        if self._remembered > MAXIMUM_REMEMBERED:
            self._moves, self._remembered = {}, 0
        self._moves[states, character] = following
        return following


@lru_cache(maxsize=128)
def compile_expression(text: str, ignore_case: bool = False) -> Expression:
    """Return a full-match predicate for the regular expression `text`; MetaError when it is wrong or unsupported."""
    if len(text) > MAXIMUM_PATTERN_LENGTH:
        raise MetaError(f"Pattern of {len(text)} characters is too long; at most {MAXIMUM_PATTERN_LENGTH} are allowed")
    try:
        return Expression(text, ignore_case)
    except ValueError as error:
        raise MetaError(f"Invalid pattern '{text[:200]}': {error}") from error
