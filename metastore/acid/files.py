"""List and read files through fsspec, where there is no Spark driver with Hadoop's file systems at hand. Changes nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import fsspec


class Status(NamedTuple):
    """An entry of a directory; `path` is complete, `length` in bytes and 0 for directories."""

    path: str
    is_directory: bool
    length: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]


def open_path(path: str) -> tuple[Any, str]:
    """Return the fsspec file system of a location and the path in it; Hadoop's names of S3 are understood."""
    return fsspec.core.url_to_fs(path.replace("s3a://", "s3://", 1).replace("s3n://", "s3://", 1))  # type: ignore[no-any-return]  # untyped


class FsspecFiles:
    """The file systems that fsspec has drivers for."""

    def list(self, path: str) -> list[Status]:
        """Return what lies in a directory; nothing when it is not there."""
        system, inner = open_path(path)
        system.invalidate_cache(inner)
        try:
            found = system.ls(inner, detail=True)
        except FileNotFoundError:
            return []
        begin = path.rstrip("/")
        return [
            Status(f"{begin}/{each['name'].rstrip('/').rpartition('/')[2]}", each["type"] == "directory", int(each.get("size") or 0))
            for each in found
            if each["name"].rstrip("/") != inner.rstrip("/")
        ]

    def read(self, path: str) -> bytes:
        """Return the content of a small file."""
        system, inner = open_path(path)
        return bytes(system.cat_file(inner))

    def read_end(self, path: str, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all of it."""
        system, inner = open_path(path)
        return bytes(system.tail(inner, size))
