"""Our reader of Thrift files makes the classes that thriftpy2's parser makes, and the type stub is current."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import thriftpy2
from thriftpy2.thrift import TException

from metastore import idl, idl_reader

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def parsed() -> Any:
    """The interface as thriftpy2 reads it."""
    return thriftpy2.load(str(ROOT / "idl" / "hive_metastore.thrift"), module_name="compared_thrift")


def plain(spec: Any) -> Any:
    """A part of a `thrift_spec` with names in the place of classes."""
    if isinstance(spec, type):
        return spec.__name__, issubclass(spec, TException)
    return tuple(plain(part) for part in spec) if isinstance(spec, tuple) else spec


def described(module: Any) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(module).items()):
        if name.startswith("__"):
            continue
        if hasattr(value, "thrift_spec"):
            yield name, struct(value)
        elif hasattr(value, "_VALUES_TO_NAMES"):
            members = [(member, getattr(value, member)) for member in value._NAMES_TO_VALUES]
            yield name, ("enum", members, value._VALUES_TO_NAMES, value._NAMES_TO_VALUES)
        elif hasattr(value, "thrift_services"):
            yield name, value.thrift_services
            for method in value.thrift_services:
                yield f"{method}_args", struct(getattr(value, f"{method}_args"))
                result = getattr(value, f"{method}_result")
                yield f"{method}_result", (struct(result), result.oneway)
        elif isinstance(value, type(module)):
            yield name, list(described(value))
        else:
            yield name, value


def struct(cls: Any) -> Any:
    fields = {number: plain(field) for number, field in cls.thrift_spec.items()}
    made = cls(*(f"value of {name}" for name, _ in cls.default_spec))
    return issubclass(cls, TException), fields, cls.default_spec, vars(cls()), vars(made)


def test_the_interface_is_the_same_as_thriftpy2_reads(parsed: Any) -> None:
    expected, found = dict(described(parsed)), dict(described(idl.hive_metastore))
    assert len(expected) > 900
    assert found.keys() == expected.keys()
    assert {name: value for name, value in found.items() if value != expected[name]} == {}


def test_the_stub_is_current() -> None:
    made = subprocess.run(
        [sys.executable, "idl/make_stubs.py"], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert made.stdout == (ROOT / "metastore" / "idl.pyi").read_text(), "run idl/make_stubs.py > metastore/idl.pyi"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("typedef i32 number", "a declaration is expected"),
        ("struct S {\n  1: i32 a = 5\n}", "a number is expected"),
        ("struct S {\n  1: Missing a\n}", "a declared name is expected"),
        ("struct S {\n  1: i32 a", "the file ends"),
        ("struct S {\n  1: i32 a ? \n}", "other.thrift:2: unexpected '\\?'"),
    ],
)
def test_syntax_that_the_reader_does_not_have_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.thrift"
    path.write_text(text)
    with pytest.raises(idl_reader.IdlError, match=said):
        idl_reader.read(path)
