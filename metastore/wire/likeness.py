"""Recognise the structs of a list that are like its first one but for their texts: they are compared, not walked over again.

A thousand partitions have the same fields, the same columns and the same serde; values, locations and some parameters differ. What is
between those texts is one comparison each. Nothing is taken for granted: what a struct has in place of a text is a size and so many bytes,
and everything else is equal to bytes that were walked over. Of a struct that is not here wholly more is waited for only while what is here
is such a begin of one, which a message can not end with.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

SIZE = struct.Struct("!i").unpack_from
WIDTH = 4
"""Bytes of the size before a text."""
Need = Callable[[int], None]
"""Waits until so many bytes of the message are here."""


class Piece(NamedTuple):
    """A piece of a storage descriptor without texts that differ, from the begin of a struct: all but its location, say."""

    descriptor: int
    """The number of the descriptor in the message that has the fields."""
    fields: tuple[str, ...]
    begin: int
    end: int


class Notes:
    """What the walk over one struct met: where texts begin, and pieces of storage descriptors; both in the message."""

    def __init__(self) -> None:
        self.texts: list[int] = []
        self.pieces: list[Piece] = []


class Runs:
    """A struct as bytes that are the same in each, with a text between one run and the next."""

    def __init__(self, model: bytes, texts: Sequence[tuple[int, int]], pieces: Sequence[Piece]) -> None:
        edges = [0, *(edge for text in texts for edge in text), len(model)]
        begins = edges[::2]
        runs = [model[begin:end] for begin, end in zip(begins, edges[1::2], strict=True)]
        self.pieces = [
            (number, piece._replace(begin=piece.begin - begin, end=piece.end - begin))
            for piece in pieces for number, begin in enumerate(begins)
            if begin <= piece.begin and piece.end <= begin + len(runs[number])
        ]
        """The pieces of storage descriptors that are common, each with the number of its run, counted from the begin of that."""
        *before_texts, self._last = runs
        self._before_texts = [(run, len(run)) for run in before_texts]
        self.before = [len(run) + WIDTH for run in before_texts]
        """How many bytes stand from the begin of a run to the text behind it, for each text."""

    def places(self, data: bytearray, at: int, need: Need) -> list[int] | None:
        """Return where the runs of the struct at a place begin, and its end; None for one that is not like this."""
        places = []
        for run, length in self._before_texts:
            if not data.startswith(run, at) and not _comes(run, data, at, need):
                return None
            places.append(at)
            at += length
            if at + WIDTH > len(data):
                need(at + WIDTH)
            size = SIZE(data, at)[0]
            if size < 0:
                return None
            at += WIDTH + size
        if not data.startswith(self._last, at) and not _comes(self._last, data, at, need):
            return None
        places += (at, at + len(self._last))
        return places

    def texts(self, places: Sequence[int]) -> list[tuple[int, int]]:
        """Return where the texts of a struct stand, their sizes included, given the places of its runs."""
        return [(begin + length, end) for (_, length), (begin, end) in zip(self._before_texts, pairwise(places[:-1]), strict=True)]

    def with_texts(self, texts: Sequence[bytes]) -> bytes:
        """Return the struct that has these texts."""
        parts: list[bytes] = []
        for (run, _), text in zip(self._before_texts, texts, strict=True):
            parts += (run, len(text).to_bytes(WIDTH, "big"), text)
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
    """What the structs of a list have in common; a text counts as common until one has another in its place."""

    def __init__(self, model: bytes, notes: Notes, begin: int, descriptors: int) -> None:
        self._model = model
        self._texts = [(at, at + WIDTH + int(SIZE(model, at)[0])) for at in (text - begin for text in notes.texts)]
        self._pieces = [piece._replace(begin=piece.begin - begin, end=piece.end - begin) for piece in notes.pieces]
        self._differing: set[int] = set()
        self._all = Runs(model, self._texts, ())
        self.runs = Runs(model, (), self._pieces)
        """What all that were met have in common."""
        self.descriptors = descriptors
        """Storage descriptors in each struct."""

    def places(self, data: bytearray, at: int, need: Need) -> list[int] | None:
        """Return where the runs of the struct at a place begin, and its end; None for one that is not like the first.

        One whose texts differ within a piece of a storage descriptor is not: the next ones may share that piece with it.
        """
        places = self.runs.places(data, at, need)
        if places is None and (wide := self._all.places(data, at, need)) is not None:
            differing = self._differing | {
                number for number, (mine, other) in enumerate(zip(self._texts, self._all.texts(wide), strict=True))
                if self._model[slice(*mine)] != data[slice(*other)]
            }
            texts = [self._texts[number] for number in sorted(differing)]
            if not any(piece.begin <= begin < piece.end for piece in self._pieces for begin, _ in texts):
                self._differing, self.runs = differing, Runs(self._model, texts, self._pieces)
                places = self.runs.places(data, at, need)
        return places
