"""Read Thrift files into modules of classes that thriftpy2's protocols encode and decode.

thriftpy2's own parser makes the same classes (`tests/test_idl.py` compares them), but takes half a second for the Hive
interface, at each start of each program. This one reads the part of the language that the files in `idl/` use, and refuses the rest of the
language, such as typedefs, defaults of fields, and annotations. This module never writes a cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from thriftpy2.thrift import TException, TPayload, TType, init_func_generator

_TOKEN = re.compile(r'//[^\n]*|#[^\n]*|/\*.*?\*/|\s+|("[^"]*"|-?\d+|[\w.]+|[{}()<>=:,;])|(.)', re.DOTALL)
_DECLARED = re.compile(r"^(struct|union|exception|enum)\s+(\w+)", re.MULTILINE)
_SIMPLE = {
    "bool": TType.BOOL, "byte": TType.BYTE, "i8": TType.BYTE, "i16": TType.I16, "i32": TType.I32, "i64": TType.I64,
    "double": TType.DOUBLE, "string": TType.STRING, "binary": TType.BINARY,
}  # fmt: skip

Type = int | tuple[int, Any]
"""A type as `thrift_spec` holds it: a number of `TType`, with the contained types for a struct, enum, list, set or map."""
Field = tuple[int, str, Type, bool]
"""A field of a struct: its number, name, type, and whether it is required."""


class IdlError(Exception):
    """A Thrift file holds something that this reader does not support; the message names the file and the place."""


def read(path: Path) -> ModuleType:
    """Return a module with the structs, enums, constants and the service of a file; each included file is an attribute.

    A service is a class with `NAME_args` and `NAME_result` for each method, its own and the inherited, and the list of
    their names, `thrift_services`. Raises IdlError, and OSError if the file or an included one can not be read.
    """
    return _Reader(path).module


class _Reader:
    """One pass over the tokens of a file. Names may be used before their declaration: all classes are made first."""

    def __init__(self, path: Path) -> None:
        text = path.read_text("utf-8")
        self._path = path
        self._tokens: list[str] = []
        for match in _TOKEN.finditer(text):
            if match[2]:
                raise IdlError(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: unexpected {match[2]!r}")
            if match[1]:
                self._tokens.append(match[1])
        self._at = 0
        self.module = ModuleType(f"{path.stem}_thrift")
        for kind, name in _DECLARED.findall(text):
            bases = (object,) if kind == "enum" else (TException,) if kind == "exception" else (TPayload,)
            ttype = TType.I32 if kind == "enum" else TType.STRUCT
            vars(self.module)[name] = type(name, bases, {"__module__": self.module.__name__, "_ttype": ttype})
        declarations: dict[str, Callable[[], None]] = {
            "namespace": self._namespace, "include": self._include, "const": self._const, "enum": self._enum,
            "struct": self._struct, "union": self._struct, "exception": self._struct, "service": self._service,
        }  # fmt: skip
        while self._at < len(self._tokens):
            kind = self._next()
            if kind not in declarations:
                raise self._unexpected("a declaration")
            declarations[kind]()

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise IdlError(f"{self._path}: the file ends inside a declaration")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, token: str) -> bool:
        """Pass over a token if it is the next one."""
        if self._at < len(self._tokens) and self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise self._unexpected(repr(token))

    def _number(self) -> int:
        token = self._next()
        if not token.lstrip("-").isdecimal():
            raise self._unexpected("a number")
        return int(token)

    def _unexpected(self, wanted: str) -> IdlError:
        before = " ".join(self._tokens[max(0, self._at - 8) : self._at - 1])
        return IdlError(f"{self._path}: {self._tokens[self._at - 1]!r} after {before!r}: {wanted} is expected")

    def _separator(self) -> None:
        self._take(",") or self._take(";")

    def _namespace(self) -> None:
        self._at += 2

    def _include(self) -> None:
        included = self._path.parent / self._next().strip('"')
        vars(self.module)[included.stem] = read(included)

    def _const(self) -> None:
        kind, name = self._next(), self._next()
        self._expect("=")
        vars(self.module)[name] = self._next().strip('"') if kind == "string" else self._number()
        self._separator()

    def _enum(self) -> None:
        enum = getattr(self.module, self._next())
        names: dict[str, int] = {}
        self._expect("{")
        while not self._take("}"):
            name = self._next()
            self._expect("=")
            names[name] = self._number()
            setattr(enum, name, names[name])
            self._separator()
        enum._NAMES_TO_VALUES = names  # noqa: SLF001  # thriftpy2's name
        enum._VALUES_TO_NAMES = {value: name for name, value in names.items()}  # noqa: SLF001  # thriftpy2's name

    def _struct(self) -> None:
        struct = getattr(self.module, self._next())
        self._expect("{")
        _fill(struct, self._fields("}"))

    def _fields(self, end: str) -> list[Field]:
        fields = []
        while not self._take(end):
            number = self._number()
            self._expect(":")
            required = self._take("required")
            if not required:
                self._take("optional")
            kind = self._type(self._next())
            fields.append((number, self._next(), kind, required))
            self._separator()
        return fields

    def _type(self, name: str) -> Type:
        if name in _SIMPLE:
            return _SIMPLE[name]
        if name in {"list", "set"}:
            self._expect("<")
            item = self._type(self._next())
            self._expect(">")
            return TType.LIST if name == "list" else TType.SET, item
        if name == "map":
            self._expect("<")
            key = self._type(self._next())
            self._expect(",")
            value = self._type(self._next())
            self._expect(">")
            return TType.MAP, (key, value)
        named = self._named(name)
        return named._ttype, named  # noqa: SLF001  # thriftpy2's name

    def _named(self, name: str) -> Any:
        found: Any = self.module
        for part in name.split("."):
            found = getattr(found, part, None)
            if found is None:
                raise self._unexpected("a declared name")
        return found

    def _service(self) -> None:
        name = self._next()
        base = self._named(self._next()) if self._take("extends") else None
        service = type(name, (base or object,), {"__module__": self.module.__name__})
        methods = []
        self._expect("{")
        while not self._take("}"):
            oneway = self._take("oneway")
            returned = None if self._take("void") else self._type(self._next())
            method = self._next()
            self._expect("(")
            arguments = self._fields(")")
            thrown = []
            if self._take("throws"):
                self._expect("(")
                thrown = self._fields(")")
            self._separator()
            values = [(0, "success", returned, False)] if returned is not None else []
            for suffix, fields in (("args", arguments), ("result", [*values, *thrown])):
                struct = type(f"{method}_{suffix}", (TPayload,), {"__module__": self.module.__name__, "_ttype": TType.STRUCT})
                _fill(struct, fields)
                setattr(service, struct.__name__, struct)
            vars(service)[f"{method}_result"].oneway = oneway
            methods.append(method)
        service.thrift_services = [*methods, *(base.thrift_services if base else ())]  # type: ignore[attr-defined]
        vars(self.module)[name] = service


def _fill(struct: Any, fields: list[Field]) -> None:
    struct.thrift_spec = {
        number: (kind, name, required) if isinstance(kind, int) else (kind[0], name, kind[1], required)
        for number, name, kind, required in fields
    }
    struct.default_spec = [(field[1], None) for field in fields]
    struct.__init__ = _constructor(tuple(field[1] for field in fields))


@cache
def _constructor(names: tuple[str, ...]) -> Callable[..., None]:
    """Make an `__init__` that takes these names; many structs of arguments and results share one."""
    made: Callable[..., None] = init_func_generator(object, [(name, None) for name in names])
    return made
