"""Write files and directories through to the disk before a commit names them, if they are in the machine's own file system.

Without that, a machine that loses its power may have the commit without the rows, whose only other copy a compaction has deleted. Object
stores keep every acknowledged write, so nothing is done there. This module writes no data.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PARALLEL = 16
"""Files that are written through at one time: a journal takes them together."""

NOT_KNOWN = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)
"""Error numbers for a directory, from mounted file systems that keep its names in another way."""


def local_path(location: str) -> str | None:
    """Return the path of a location in the machine's own file system; None for any other."""
    if not location.startswith("file:"):
        return None
    path = location.removeprefix("file:")
    return "/" + path.lstrip("/")


def sync(paths: Iterable[str]) -> None:
    """Write files, and the names in directories, through to the disk. OSError with the path of a file that may be lost."""
    listed = list(dict.fromkeys(paths))
    if len(listed) < 2:
        for path in listed:
            _sync(path)
        return
    with ThreadPoolExecutor(min(PARALLEL, len(listed)), "sync") as pool:
        list(pool.map(_sync, listed))


def sync_placed(directories: Iterable[str], top: str) -> None:
    """Write directories through with the files directly in them, and with the directories above them up to `top`. OSError."""
    listed = list(directories)
    sync(str(path) for directory in listed for path in Path(directory).iterdir() if path.is_file())
    sync(path for directory in listed for path in up_to(directory, top))


def up_to(directory: str, top: str) -> list[str]:
    """Return a directory and its parents up to `top`; only the nearest parent where it is not below `top`."""
    path, end = Path(directory), Path(top)
    if end not in path.parents:
        return [str(path), str(path.parent)]
    return [str(path), *(str(each) for each in path.parents if each == end or end in each.parents)]


def _sync(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in NOT_KNOWN or not stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(number)
