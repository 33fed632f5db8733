"""Every method has one entry, and the server's facts of methods are derived from the entries."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import metastore
from metastore.methods import METHODS
from metastore.methods.documents import methods
from metastore.methods.forms.entry import ALL, joined, reads
from metastore.methods.forms.rules import OPEN
from metastore.methods.interface.signatures import signature

DOCUMENT = Path(__file__).parents[2] / "docs" / "methods.md"
CHANGING = tuple("create alter drop add append rename truncate update delete grant revoke commit abort seed mark set exchange".split())  # noqa: SIM905
"""The beginnings of the names of methods that change something."""
FOR_THE_CONNECTION = {"set_ugi", "setMetaConf"}
PACKAGE = Path(metastore.__file__).parent
CALLERS = ("acid", "app.py", "console", "shadow", "spark", "transfer")
"""Programs that call methods, as clients do. They have to name them."""
OTHER_WORDS = {"compact", "lock", "open_txns", "unlock"}
"""Names of methods that are also the names of a protocol, a time, a field and a command."""


def test_the_interface_has_305_methods() -> None:
    assert len(ALL) == 305


def test_every_method_has_one_whole_entry() -> None:
    assert METHODS.keys() == ALL
    wrong = []
    for name, entry in METHODS.items():
        if name.lower().startswith(CHANGING) and not entry.changes and name not in FOR_THE_CONNECTION:
            wrong.append(f"{name} reads, by its entry")
        if entry.replica and (entry.changes or signature(name).oneway):
            wrong.append(f"{name} changes something, and a replica may answer it")
        if entry.dead and entry.changes:
            wrong.append(f"{name} is of a dead feature and changes something")
        if entry.changes and entry.rule is OPEN:
            wrong.append(f"{name} changes something, and anybody may call it")
    assert not wrong


def test_facts_about_a_method_stand_in_its_entry() -> None:
    """The name of a method is in one file, apart from the programs that call methods."""
    files = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        within = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and node.value in METHODS.keys() - OTHER_WORDS and not within.startswith(CALLERS):
                files[node.value].add(within)
    assert files.keys() == METHODS.keys() - OTHER_WORDS
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_methods_that_change_something_though_their_names_read() -> None:
    assert {name for name, entry in METHODS.items() if entry.changes and name.startswith(("get", "show", "list"))} == {
        "get_delegation_token",
        "get_lock_materialization_rebuild",
    }


def test_the_document_is_current() -> None:
    assert DOCUMENT.read_text() == methods(), "run `python -m metastore.methods methods > docs/methods.md`"


def test_two_entries_of_a_method_are_an_error() -> None:
    entry = reads("get_table", lambda _call, _args: None, OPEN)
    with pytest.raises(ValueError, match="method get_table has two entries; keep one"):
        joined([entry, entry])


def test_a_method_that_the_interface_lacks_is_an_error() -> None:
    with pytest.raises(ValueError, match="the interface has no method get_tabel; correct the name"):
        joined([reads("get_tabel", lambda _call, _args: None, OPEN)])


def test_a_method_without_entry_is_an_error() -> None:
    with pytest.raises(ValueError, match="these methods have no entry: get_table; write one for each"):
        joined(entry for entry in METHODS.values() if entry.name != "get_table")
