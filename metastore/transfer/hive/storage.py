"""Read Hive's storage descriptors: the columns and the formats that tables and partitions have. Shared parts are made once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from metastore.store.drivers.contract import Row
from metastore.transfer.hive.schema import HiveSchema, flag
from metastore.transfer.records import content_hash

_SDS = (
    "CD_ID", "SERDE_ID", "LOCATION", "INPUT_FORMAT", "OUTPUT_FORMAT", "IS_COMPRESSED", "NUM_BUCKETS", "IS_STOREDASSUBDIRECTORIES",
)  # fmt: skip
_SERDES = ("NAME", "SLIB", "DESCRIPTION", "SERIALIZER_CLASS", "DESERIALIZER_CLASS", "SERDE_TYPE")
_NO_SERDE: Row = (None,) * len(_SERDES)


class Content(NamedTuple):
    """A column list or storage format, and the hash by which it is named."""

    hash: str
    content: Any


class Described(NamedTuple):
    """A storage descriptor; it may have no columns."""

    location: str | None
    columns: Content | None
    storage: Content


class Storage:
    """Reads storage descriptors by their numbers, and remembers the contents of the last ones."""

    MOST = 10_000
    """Contents that are remembered."""

    def __init__(self, schema: HiveSchema) -> None:
        self._schema = schema
        self._columns: dict[int, Content] = {}
        self._formats: dict[Any, Content] = {}

    def load(self, numbers: Iterable[int | None]) -> dict[int, Described]:
        """Return the storage descriptors of numbers."""
        schema = self._schema
        rows = list(schema.among("SDS", "SD_ID", (number for number in numbers if number is not None), *_SDS))
        keys = [row[0] for row in rows]
        serdes = {row[0]: row[1:] for row in schema.among("SERDES", "SERDE_ID", (row[2] for row in rows), *_SERDES)}
        serde_parameters = schema.maps("SERDE_PARAMS", "SERDE_ID", serdes)
        parameters = schema.maps("SD_PARAMS", "SD_ID", keys)
        buckets = schema.lists("BUCKETING_COLS", "SD_ID", keys, "BUCKET_COL_NAME")
        sorts = schema.grouped("SORT_COLS", "SD_ID", keys, "COLUMN_NAME", "ORDER", order="INTEGER_IDX")
        skews = self._skews(keys)
        columns = self.columns(row[1] for row in rows)
        found = {}
        for key, cd, serde, location, input_, output, compressed, number, subdirectories in rows:
            format_ = self._format(
                (input_, output, flag(compressed), number, serdes.get(serde, _NO_SERDE), flag(subdirectories)),
                serde_parameters.get(serde, {}),
                parameters.get(key, {}),
                (buckets.get(key, []), sorts.get(key, []), skews.get(key, _NO_SKEW)),
            )
            found[key] = Described(location, columns.get(cd) if cd is not None else None, format_)
        return found

    def columns(self, numbers: Iterable[int | None]) -> dict[int, Content]:
        """Return column lists by their numbers."""
        wanted = {number for number in numbers if number is not None}
        if len(self._columns) > self.MOST:
            self._columns.clear()
        missing = wanted.difference(self._columns)
        rows = self._schema.grouped("COLUMNS_V2", "CD_ID", missing, "COLUMN_NAME", "TYPE_NAME", "COMMENT", order="INTEGER_IDX")
        for number in missing:
            content = [[name.lower(), kind, comment] for name, kind, comment in rows.get(number, ())]
            self._columns[number] = Content(content_hash(content), content)
        return {number: self._columns[number] for number in wanted}

    def _format(self, plain: Any, serde_parameters: dict[str, str], parameters: dict[str, str], lists: Any) -> Content:
        mark = (plain, tuple(serde_parameters.items()), tuple(parameters.items()), repr(lists) if any(lists[:2]) or lists[2][0] else "")
        found = self._formats.get(mark)
        if found is None:
            if len(self._formats) > self.MOST:
                self._formats.clear()
            input_, output, compressed, number, serde, subdirectories = plain
            buckets, sorts, skew = lists
            content = {
                "input": input_,
                "output": output,
                "compressed": compressed,
                "buckets": number or 0,
                "serde": [serde[0], serde[1], dict(sorted(serde_parameters.items())), *serde[2:5], serde[5] or None],
                "bucket_columns": buckets,
                "sort_columns": [list(each) for each in sorts],
                "parameters": dict(sorted(parameters.items())),
                "skew": list(skew),
                "subdirectories": subdirectories,
            }
            found = self._formats[mark] = Content(content_hash(content), content)
        return found

    def _skews(self, keys: list[int]) -> dict[int, Any]:
        """Return the skewed columns, the skewed values and their locations by descriptor."""
        schema = self._schema
        names = schema.lists("SKEWED_COL_NAMES", "SD_ID", keys, "SKEWED_COL_NAME")
        lists = schema.lists("SKEWED_VALUES", "SD_ID_OID", names, "STRING_LIST_ID_EID")
        places = schema.grouped("SKEWED_COL_VALUE_LOC_MAP", "SD_ID", names, "STRING_LIST_ID_KID", "LOCATION")
        wanted = [number for each in lists.values() for number in each] + [row[0] for each in places.values() for row in each]
        values = schema.lists("SKEWED_STRING_LIST_VALUES", "STRING_LIST_ID", wanted, "STRING_LIST_VALUE")
        return {
            key: (
                columns,
                [values.get(number, []) for number in lists.get(key, ())],
                sorted(([values.get(number, []), location] for number, location in places.get(key, ())), key=repr),
            )
            for key, columns in names.items()
        }


_NO_SKEW: Any = ([], [], [])
