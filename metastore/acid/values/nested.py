"""Put Arrow arrays of structs, lists and maps together again from changed parts: nulls stay null, slices are allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def structs(like: Any, fields: Sequence[Any], kind: pa.DataType) -> Any:
    """Return structs of a type that are null where `like`, an array of structs, is."""
    return pa.StructArray.from_arrays(list(fields), fields=list(kind), mask=pc.is_null(like))


def lists(like: Any, items: Any, kind: pa.DataType) -> Any:
    """Return lists of a type whose items replace `like.values`."""
    return pa.ListArray.from_arrays(_offsets(like), items, type=kind)


def maps(like: Any, keys: Any, items: Any, kind: pa.DataType) -> Any:
    """Return maps of a type whose keys and items replace those of `like`."""
    return pa.MapArray.from_arrays(_offsets(like), keys, items).cast(kind)


def times(values: Any) -> Iterator[Any]:
    """Yield the arrays of timestamps within an array."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        yield values
    elif pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            yield from times(values.field(place))
    elif pa.types.is_map(kind):
        yield from times(values.keys)
        yield from times(values.items)
    elif pa.types.is_list(kind):
        yield from times(values.values)


def _offsets(like: Any) -> Any:
    """Return the offsets of lists, null where a list is, as Arrow takes them."""
    if not like.null_count:
        return like.offsets
    return pa.array(np.asarray(like.offsets), pa.int32(), mask=np.append(np.asarray(pc.is_null(like)), False))
