"""Put Arrow arrays of structs, lists and maps together again from changed parts: what is null stays null, slices are understood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def structs(like: Any, fields: Sequence[Any], kind: pa.DataType) -> Any:
    """Return structs of a type that are null where `like`, an array of structs, is."""
    return pa.StructArray.from_arrays(list(fields), fields=list(kind), mask=pc.is_null(like))


def lists(like: Any, items: Any, kind: pa.DataType) -> Any:
    """Return lists of a type whose items stand in the place of `like.values`."""
    return pa.ListArray.from_arrays(_offsets(like), items, type=kind)


def maps(like: Any, keys: Any, items: Any, kind: pa.DataType) -> Any:
    """Return maps of a type whose keys and items stand in the place of those of `like`."""
    return pa.MapArray.from_arrays(_offsets(like), keys, items).cast(kind)


def _offsets(like: Any) -> Any:
    """Return the offsets of lists, null where a list is, as Arrow takes them."""
    if not like.null_count:
        return like.offsets
    return pa.array(np.asarray(like.offsets), pa.int32(), mask=np.append(np.asarray(pc.is_null(like)), False))
