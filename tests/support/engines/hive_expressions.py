"""Expressions as clients of Hive serialised them, with the partitions of sixty that Hive itself keeps. See tests/hive4/Expressions.java."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

RAW = json.loads(Path(__file__).with_name("hive_expressions.json").read_text())
KEYS: list[tuple[str, str]] = [tuple(key.split(" ", 1)) for key in RAW["keys"]]
PARTITIONS: list[str] = RAW["partitions"]


class Serialised(NamedTuple):
    """An expression of one release of Hive: the names that Hive keeps, and whether it reports one of them as unknown."""

    data: bytes
    kept: frozenset[str]
    unknown: bool


EXPRESSIONS = {
    (text, version): Serialised(bytes.fromhex(each["bytes"]), frozenset(PARTITIONS[number] for number in each["kept"]), each["unknown"])
    for text, versions in RAW["expressions"].items() for version, each in versions.items()
}  # fmt: skip
"""The expressions by (HiveQL, version)."""
