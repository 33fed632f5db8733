"""Write and read partition names such as `dt=2020-01-01/hr=7`.

Source: Hive's FileUtils (escapePathName, makePartName) and Warehouse (makePartName, makeSpecFromName,
getPartValuesFromPartName). A name made here is always one relative path of `key=value` components: slashes, colons and
control characters are escaped, and a component can be neither `.` nor `..` because it holds a `=`. This module never
joins a name to a location.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from metastore.errors import InvalidObject, MetaError
from metastore.rules.patterns import compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The text in a name for a null or empty value (`hive.exec.default.partition.name`)."""

WHITELIST_SETTING = "metastore.partition.name.whitelist.pattern"

_ESCAPED = [chr(code) for code in (*range(0x20), 0x7F)] + list("\"#%'*/:=?\\{[]^")
_ESCAPES = str.maketrans({character: f"%{ord(character):02X}" for character in _ESCAPED})
_MUST_ESCAPE = re.compile(f"[{re.escape(''.join(_ESCAPED))}]")
_ESCAPE_SEQUENCE = re.compile(r"%([0-9A-Fa-f]{2})")


def escape(text: str) -> str:
    """Return `text` with every character that a partition name must not contain as `%XX`."""
    return text.translate(_ESCAPES) if _MUST_ESCAPE.search(text) else text


def unescape(text: str) -> str:
    """Undo `escape`; a `%` without two hexadecimal digits after it is not changed."""
    return _ESCAPE_SEQUENCE.sub(_unescaped, text) if "%" in text else text


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


@lru_cache(maxsize=1024)
def _prefixes(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(("/" if position else "") + escape(key.lower()) + "=" for position, key in enumerate(keys))


def make_partition_name(keys: Sequence[str], values: Sequence[str], default_name: str = DEFAULT_PARTITION) -> str:
    """Return the name of the partition with `values`, one for each of the table's partition `keys`, in their order.

    Keys are lowered, values keep their case; an empty value becomes `default_name`. MetaError when the counts differ.
    """
    return make_partition_names(keys, [values], default_name)[0]


def make_partition_names(keys: Sequence[str], many: Iterable[Sequence[str]], default_name: str = DEFAULT_PARTITION) -> list[str]:
    """Return the names of many partitions of one table, as `make_partition_name` does. MetaError."""
    prefixes = _prefixes(tuple(keys))
    must_escape = _MUST_ESCAPE.search
    names = []
    for values in many:
        if len(values) != len(prefixes) or not prefixes:
            raise MetaError(f"Invalid partition key & values; keys {_java_list(keys)}, values {_java_list(values)}")
        name = ""
        for prefix, value in zip(prefixes, values, strict=True):
            if not value:
                name += prefix + default_name
            else:
                name += prefix + (value.translate(_ESCAPES) if must_escape(value) else value)
        names.append(name)
    return names


def _java_list(items: Sequence[str]) -> str:
    return "[" + ", ".join(items) + "]"


def partition_spec(name: str | None) -> dict[str, str]:
    """Return the unescaped values of a partition name by their keys, in the name's order.

    MetaError when the name is empty or a component is not `key=value`.
    """
    return dict(_pairs(name))


def partition_values(name: str | None) -> list[str]:
    """Return the unescaped values of a partition name in the name's order; MetaError as `partition_spec`."""
    return [value for _, value in _pairs(name)]


def _pairs(name: str | None) -> list[tuple[str, str]]:
    if not name:
        raise MetaError(f"Partition name is invalid. {name}")
    pairs = []
    for component in name.split("/"):
        key, mark, value = component.partition("=")
        if not mark or not key:
            raise MetaError(f"Partition name is invalid. {name}: '{component}' is not of the form key=value")
        pairs.append((unescape(key), unescape(value)))
    return pairs


def values_for_keys(keys: Sequence[str], name: str | None, *, may_have_more: bool = False) -> list[str]:
    """Return the values of `name` in the order of the table's partition `keys`; the name may have any order.

    Keys are found in any case. InvalidObject when the name lacks a key, has one twice, or has one that the table does not have. With
    `may_have_more` the last are ignored, as by Hive's calls that take one name: its clients expect it.
    """
    try:
        pairs = [(key.lower(), value) for key, value in _pairs(name)]
    except MetaError as error:
        raise InvalidObject(error.message) from error
    spec, wanted = dict(pairs), [key.lower() for key in keys]
    if len(spec) < len(pairs):
        raise InvalidObject(f"wrong partition name - it has a key twice: {name}")
    for key, lowered in zip(keys, wanted, strict=True):
        if lowered not in spec:
            raise InvalidObject(f"incomplete partition name - missing {key}: {name}")
    if len(spec) > len(wanted) and not may_have_more:
        raise InvalidObject(f"wrong partition name - the table's keys are {', '.join(wanted)} and no others: {name}")
    return [spec[key] for key in wanted]


def has_keys(name: str, keys: Sequence[str]) -> bool:
    """Return whether a partition name has all of the keys in the very case that they are given in."""
    try:
        return {*keys} <= partition_spec(name).keys()
    except MetaError:
        return False


def stored_names(keys: Sequence[str], names: Iterable[str], default_name: str = DEFAULT_PARTITION) -> list[str]:
    """Return partition names as they are stored: the one rule by which all calls read a name.

    Keys in any case and order, values escaped or not. InvalidObject for a name that has not just these keys, each once.
    """
    is_plain = plain_names(tuple(keys)).fullmatch
    return [name if is_plain(name) else make_partition_name(keys, values_for_keys(keys, name), default_name) for name in names]


@lru_cache(maxsize=256)
def plain_names(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for partition names with these keys in their stored form: nothing to escape or to reorder."""
    value = f"[^{re.escape(''.join(_ESCAPED))}]+"
    return re.compile("/".join(f"{re.escape(escape(key.lower()))}={value}" for key in keys))


def validate_values(values: Sequence[str | None], whitelist: str = "") -> None:
    """Raise MetaError unless every value is text without NUL and matches the whitelist, a regular expression, wholly; "" accepts all."""
    fits = compile_expression(whitelist) if whitelist else None
    for value in values:
        if value is None:
            raise MetaError("Partition value cannot be null; use the default partition's name instead")
        if "\0" in value:
            raise MetaError(f"Partition value '{value}' contains a NUL character, which no name can hold")
        if fits is not None and not fits(value):
            raise MetaError(
                f"Partition value '{value}' contains a character not matched by whitelist pattern "
                f"'{whitelist}'.  (configure with {WHITELIST_SETTING})"
            )


def partial_values(
    keys: Sequence[str], values: Sequence[str], default_name: str = DEFAULT_PARTITION
) -> tuple[str, Callable[[Sequence[str]], bool]]:
    """Return the selection of partitions whose values begin with `values`: a name prefix and a predicate.

    An empty value matches anything. Every selected name begins with the prefix, which ends with a `/` unless it is a whole name; the
    predicate over a partition's values decides. MetaError when there are more values than keys.
    """
    if len(values) > len(keys):
        raise MetaError(f"Incorrect number of partition values. numPartKeys={len(keys)}, part_val={_java_list(values)}")
    leading = 0
    while leading < len(values) and values[leading]:
        leading += 1
    prefix = ""
    if leading:
        prefix = make_partition_name(keys[:leading], values[:leading], default_name)
        if leading < len(keys):
            prefix += "/"
    wanted = [(position, value) for position, value in enumerate(values) if value]

    def matches(candidate: Sequence[str]) -> bool:
        return all(candidate[position] == value or (value == default_name and not candidate[position]) for position, value in wanted)

    return prefix, matches


def canonical_name(name: str) -> str:
    """Return a partition name in its stored form, from any case of its keys and any escaping of its values.

    The order of the keys stays, since the table's keys are not known. A part that is not a `key=value` is lowered, as a key.
    """
    parts = (part.partition("=") for part in name.split("/"))
    return "/".join(escape(unescape(key).lower()) + mark + escape(unescape(value)) for key, mark, value in parts)
