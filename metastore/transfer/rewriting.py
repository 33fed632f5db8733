"""Change the locations in records, `hdfs://a` to `s3a://b`, for data that is moved too. Never touches a file system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from metastore.errors import InvalidInput, InvalidOperation
from metastore.transfer.contract import Changes, Reader
from metastore.transfer.records import Key, Record, content_hash, key_text
from metastore.transfer.selection import Selection

POINTERS = ("metadata_location", "previous_metadata_location")
"""Parameters of Iceberg: the files that they name hold absolute locations themselves."""
_FIELDS = {"catalog": ("location",), "database": ("location", "managed_location"), "table": ("location",), "partition": ("location",)}


class Rewritten:
    """A reader that replaces the beginnings of locations. The longest beginning that fits is replaced."""

    def __init__(self, reader: Reader, rules: Iterable[str]) -> None:
        """Each rule is FROM=TO. InvalidInput."""
        self._reader = reader
        self.name = reader.name
        self.kinds = reader.kinds
        self.seen = reader.seen
        pairs = [rule.partition("=") for rule in rules]
        if wrong := ["".join(pair) for pair in pairs if not pair[0] or not pair[2]]:
            raise InvalidInput(f"--rewrite-location {wrong[0]}: write FROM=TO, such as hdfs://old=s3a://new")
        self._pairs = sorted(((source.rstrip("/"), target.rstrip("/")) for source, _, target in pairs), key=lambda pair: -len(pair[0]))
        self._hashes: dict[str, str] = {}

    def of(self, location: str) -> str:
        """Return a location, changed if it is in one of the places that are replaced."""
        for source, target in self._pairs:
            if location.startswith(source) and location[len(source) : len(source) + 1] in ("", "/"):
                return target + location[len(source) :]
        return location

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    def partitions(self) -> int:
        """Count the partitions."""
        return self._reader.partitions()

    @property
    def skipped(self) -> list[str]:
        """Return the things that the reader does not yield, each with the reason."""
        return self._reader.skipped

    def tables(self, selection: Selection) -> set[Key]:
        """Return the names of the reader's tables."""
        return self._reader.tables(selection)

    def changes(self, after: int) -> Changes | None:
        """Return the changes of the reader's log."""
        return self._reader.changes(after)

    def records(self, selection: Selection) -> Iterator[Record]:
        """Yield records with other locations. InvalidOperation for a table of Iceberg in a place that is replaced."""
        for record in self._reader.records(selection):
            if record.kind == "location_grant":
                yield record._replace(key=(*record.key[:2], self.of(record.key[2])))
            elif record.kind == "descriptor":
                content = self._content(record.body["content"])
                name = self._hashes[record.key[3]] = content_hash(content)
                yield record._replace(key=(*record.key[:3], name), body={"content": content})
            elif record.kind in _FIELDS:
                yield record._replace(body=self._body(record))
            else:
                yield record

    def _body(self, record: Record) -> dict[str, Any]:
        body = dict(record.body)
        for name in _FIELDS[record.kind]:
            if body[name]:
                body[name] = self.of(body[name])
        parameters: Mapping[str, str] = body.get("parameters") or {}
        for name in POINTERS:
            if name in parameters and self.of(parameters[name]) != parameters[name]:
                raise InvalidOperation(
                    f"{key_text(record)}: it is an Iceberg table, whose files name {parameters[name]} and others in full; leave it out "
                    "with --exclude, move it with Iceberg's rewrite_table_path, and register it"
                )
        if record.kind == "table":
            body["storage"] = self._content(body["storage"])
        if record.kind == "partition" and body["storage"] in self._hashes:
            body["storage"] = self._hashes[body["storage"]]
        return body

    def _content(self, content: Any) -> Any:
        """Return a storage format with other locations: of skewed values, and the parameter `path`, which Spark gives SerDes."""
        if not isinstance(content, dict):
            return content
        serde, skew = list(content["serde"]), list(content["skew"])
        serde[2] = {name: self.of(value) if name == "path" and value else value for name, value in serde[2].items()}
        skew[2] = [[values, self.of(location)] for values, location in skew[2]]
        return {**content, "serde": serde, "skew": skew}
