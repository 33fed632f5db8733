from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from metastore.methods import METHODS
from metastore.methods.forms.entry import ALL, document, merge
from metastore.methods.operations.legacy import ANSWERS

DOCUMENT = Path(__file__).parents[2] / "docs" / "methods.md"


def module(name: str, *methods: str) -> ModuleType:
    made = ModuleType(name)
    made.METHODS = dict.fromkeys(methods, lambda _call, _args: None)  # type: ignore[attr-defined]
    return made


def test_the_interface_has_305_methods() -> None:
    assert len(ALL) == 305


def test_the_document_is_current() -> None:
    assert DOCUMENT.read_text() == document(METHODS, ANSWERS), "run `python -m metastore.methods methods > docs/methods.md`"


def test_a_method_in_two_modules_is_an_error() -> None:
    with pytest.raises(ValueError, match="b: method get_table is in another module"):
        merge([module("a", "get_table"), module("b", "get_table")])


def test_a_method_that_the_interface_lacks_is_an_error() -> None:
    with pytest.raises(ValueError, match="a: the interface has no method get_tabel"):
        merge([module("a", "get_tabel")])
