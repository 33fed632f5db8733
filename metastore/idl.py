"""Load the Thrift interface once and offer its structs, enums and constants as attributes.

The structs are the vocabulary of service, rules and store; no second family of classes mirrors them. The types of their fields are in the
generated stub `idl.pyi`. This module never touches a socket.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metastore import idl_reader


def directory() -> Path:
    """Return the folder that holds the Thrift files: inside the wheel, or beside the package in a checkout."""
    packaged = Path(__file__).parent / "_idl"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "idl"


hive_metastore = idl_reader.read(directory() / "hive_metastore.thrift")
fb303 = hive_metastore.fb303
service = hive_metastore.ThriftHiveMetastore


def _copy(struct: Any) -> Any:
    """Copy a struct as `copy.copy` does, in a tenth of the time that its general way takes."""
    made = struct.__class__.__new__(struct.__class__)
    made.__dict__ = struct.__dict__.copy()
    return made


for _struct in vars(hive_metastore).values():
    if isinstance(_struct, type) and hasattr(_struct, "thrift_spec"):
        # A struct that the store makes without __init__, for speed, has no attribute for an absent field.
        for _field in _struct.thrift_spec.values():
            setattr(_struct, _field[1], None)
        setattr(_struct, "__copy__", _copy)  # noqa: B010  # a plain assignment is unknown to the type checker

globals().update({name: value for name, value in vars(hive_metastore).items() if not name.startswith("__")})
