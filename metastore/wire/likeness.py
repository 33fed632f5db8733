"""Recognise the structs of a list that are like its first one but for their texts and numbers: they are compared, not walked over again.

A thousand partitions have the same fields, the same columns and the same serde; values, locations and some parameters differ. What is
between those is one comparison each. Nothing is taken for granted: what a struct has in place of a text is a size and so many bytes, in
place of a number as many bytes as the number has, and everything else is equal to bytes that were walked over. Of a struct that is not here
wholly more is waited for only while what is here is such a begin of one, which a message can not end with.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from thriftpy2.thrift import TPayload

SIZE = struct.Struct("!i").unpack_from
WIDTH = 4
"""Bytes of the size before a text."""
FEW = 20
"""Runs of a struct up to which it is worth to look whether all stand as in the one before."""
Need = Callable[[int], None]
"""Waits until so many bytes of the message are here."""


class Piece(NamedTuple):
    """A piece of a storage descriptor without texts that differ, from the begin of a struct: all but its location, say."""

    descriptor: int
    """The number of the descriptor in the message that has the fields."""
    fields: tuple[str, ...]
    begin: int
    end: int


Places = list[int]
"""Where the runs of a struct begin in the message, and where the struct ends."""
Leaf = tuple[int, int, int]
"""A text or number, from the begin of a struct or in the message: where the size of the text stands, or the number; how wide the number is,
0 for a text; where it ends."""


class Notes:
    """What the walk over one struct met: texts and numbers, and pieces of storage descriptors; both in the message."""

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self.pieces: list[Piece] = []


class Runs:
    """A struct as bytes that are the same in each, with a text or number between one run and the next."""

    def __init__(self, model: bytes, leaves: Sequence[Leaf], pieces: Sequence[Piece]) -> None:
        begins = [0, *(end for _, _, end in leaves)]
        ends = (*(begin for begin, _, _ in leaves), len(model))
        *before, self._last = runs = [model[begin:end] for begin, end in zip(begins, ends, strict=True)]
        self.widths = [width for _, width, _ in leaves]
        self._before = [(run, len(run), width) for run, width in zip(before, self.widths, strict=True)]
        self._as_last: list[tuple[bytes, int]] = []
        """What begins each run and, if a text follows, has its size, in the struct that was met last, and where from its begin."""
        self._last_places: list[int] = []
        self.skipped = [length if width else length + WIDTH for _, length, width in self._before]
        """How many bytes stand from the begin of a run to those of the text or number behind it."""
        self.pieces = [
            (number, piece._replace(begin=piece.begin - begin, end=piece.end - begin))
            for piece in pieces
            for number, begin in enumerate(begins)
            if begin <= piece.begin and piece.end <= begin + len(runs[number])
        ]
        """The pieces of storage descriptors that are common, each with the number of its run, counted from the begin of that."""

    def following(self, data: bytearray, at: int, most: int, need: Need) -> list[Places]:
        """Return the places of the structs that stand there from a place on, as many as are like this, at most so many."""
        found: list[Places] = []
        while len(found) < most:
            for known, offset in self._as_last:
                if not data.startswith(known, at + offset):
                    places = self.places(data, at, need)
                    break
            else:
                places = [at + offset for offset in self._last_places] if self._as_last else self.places(data, at, need)
            if places is None:
                break
            found.append(places)
            at = places[-1]
        return found

    def places(self, data: bytearray, at: int, need: Need) -> Places | None:
        """Return those of the struct at a place; None for one that is not like this."""
        places = []
        begin = at
        for run, length, width in self._before:
            if not data.startswith(run, at) and not _comes(run, data, at, need):
                return None
            places.append(at)
            at += length
            if width:
                at += width
            else:
                if at + WIDTH > len(data):
                    need(at + WIDTH)
                size = SIZE(data, at)[0]
                if size < 0:
                    return None
                at += WIDTH + size
        if not data.startswith(self._last, at) and not _comes(self._last, data, at, need):
            return None
        places += (at, at + len(self._last))
        if len(places) <= FEW:
            self._last_places = [place - begin for place in places]
            self._as_last = [
                (bytes(data[place : place + skipped]), place - begin) for place, skipped in zip(places, self.skipped, strict=False)
            ]
            self._as_last.append((self._last, at - begin))
        return places

    def filled(self, values: Sequence[bytes]) -> bytes:
        """Return the struct with other texts and numbers."""
        parts: list[bytes] = []
        for (run, _, width), value in zip(self._before, values, strict=True):
            parts += (run, value) if width else (run, len(value).to_bytes(WIDTH, "big"), value)
        return b"".join((*parts, self._last))


def _comes(run: bytes, data: bytearray, at: int, need: Need) -> bool:
    """Tell whether a run that is not here, or not wholly, stands at a place; wait for more of it as long as what is here is its begin."""
    seen = 0
    need(at + 1)
    while (here := len(data) - at) < len(run):
        if data[at + seen :] != run[seen:here]:
            return False
        seen = here
        need(at + here + 1)
    return data.startswith(run, at)


class Likeness:
    """What the structs of a list have in common; a text or number counts as common until one has another in its place."""

    def __init__(self, model: bytes, notes: Notes, begin: int, descriptors: int) -> None:
        self._model = model
        self._leaves = [(start - begin, width, end - begin) for start, width, end in notes.leaves]
        self._pieces = [piece._replace(begin=piece.begin - begin, end=piece.end - begin) for piece in notes.pieces]
        self._differing: set[int] = set()
        self._all = Runs(model, self._leaves, ())
        self.runs = Runs(model, (), self._pieces)
        """What all that were met have in common."""
        self.descriptors = descriptors
        """Storage descriptors in each struct."""
        self.template: Any = None
        """What makes structs with these runs, or with earlier ones, once it is known."""

    def following(self, data: bytearray, at: int, most: int, need: Need) -> list[Places]:
        """Return the places of the structs that stand there from a place on, as many as are like the first, at most so many.

        One that differs within a piece of a storage descriptor is not like it: the next ones may share that piece with it.
        """
        found = self.runs.following(data, at, most, need)
        while len(found) < most and self._widens(data, found[-1][-1] if found else at, need):
            found += self.runs.following(data, found[-1][-1] if found else at, most - len(found), need)
        return found

    def _widens(self, data: bytearray, at: int, need: Need) -> bool:
        """Tell whether the struct at a place is like the first if less counts as common, as it does from then on."""
        wide = self._all.places(data, at, need)
        if wide is None:
            return False
        values = zip(self._leaves, self._all.skipped, wide, wide[1:], strict=False)
        differing = self._differing | {
            number
            for number, ((start, width, end), skipped, place, following) in enumerate(values)
            if self._model[start if width else start + WIDTH : end] != data[place + skipped : following]
        }
        leaves = [self._leaves[number] for number in sorted(differing)]
        if any(piece.begin <= start < piece.end for piece in self._pieces for start, _, _ in leaves):
            return False
        self._differing, self.runs = differing, Runs(self._model, leaves, self._pieces)
        return True

    def widened(self, many: list[Places], data: bytearray, need: Need) -> list[Places]:
        """Return the places of structs, some of which were met when more was in common."""
        number = len(self.runs.widths) + 2
        if len(many[0]) == number:
            return many
        return [places if len(places) == number else self.runs.places(data, places[0], need) or places for places in many]


Likenesses = dict[type[TPayload], Likeness]
"""What structs had in common, by their kind."""
