"""Work on local files: make, rename, delete and count, so that no other process's files are taken. Knows no location, only paths.

Paths are absolute and have no slash at their end. Every method raises what the operating system raises.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import suppress

import structlog

from metastore.hidden import is_hidden
from metastore.warehouse.summary import DirectorySummary

log = structlog.get_logger()


class LocalFiles:
    """The files of this machine; has the methods of `RemoteFiles`."""

    makes_directories = True
    is_remote = False

    def exists(self, path: str) -> bool:
        """Tell whether something of this name is there, a broken link too."""
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def look(self, path: str) -> bool | None:
        """Tell by one look, since directories come and go, whether a directory is there: False for anything else, None for nothing."""
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        return stat.S_ISDIR(mode) or (stat.S_ISLNK(mode) and os.path.isdir(path))

    def is_empty(self, path: str) -> bool:
        """Tell whether nothing lies in a directory; FileNotFoundError if it is not there."""
        with os.scandir(path) as entries:
            return next(entries, None) is None

    def entries(self, path: str) -> list[tuple[str, bool]]:
        """Return the names in a directory and whether each is one too; FileNotFoundError if it is not there."""
        with os.scandir(path) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries]

    def read(self, path: str, most: int | None = None) -> bytes:
        """Return what a small file holds, or its first bytes; FileNotFoundError if it is not there."""
        with open(path, "rb") as file:
            return file.read(most)

    def write(self, path: str, data: bytes) -> None:
        """Make a small file, or write it anew."""
        with open(path, "wb") as file:
            file.write(data)

    def is_writable(self, path: str) -> bool:
        """Tell whether entries can be removed from a directory."""
        return not os.path.isdir(path) or os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)

    def make(self, path: str) -> None:
        """Make one directory. FileExistsError, FileNotFoundError without a parent."""
        os.mkdir(path)

    def make_all(self, path: str, mode: int = 0o777) -> None:
        """Make a directory with its parents where missing. FileExistsError or NotADirectoryError when a file is in the way."""
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        if parent != path:
            self.make_all(parent, mode)
        try:
            os.mkdir(path, mode)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def remove_empty(self, path: str) -> None:
        """Remove a directory in which nothing lies; OSError for any other."""
        os.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        """Give a directory, file or link another name; FileExistsError when that is taken.

        The name is claimed first, since the system's rename takes the place of an empty directory without a word.
        Between two devices the data is copied.
        """
        is_directory = os.path.isdir(old) and not os.path.islink(old)
        os.lstat(old)
        if is_directory:
            os.mkdir(new)
        else:
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        try:
            os.rename(old, new)
        except OSError as error:
            with suppress(OSError):
                (os.rmdir if is_directory else os.unlink)(new)
            if error.errno != errno.EXDEV:
                raise
            _copy(old, new, is_directory=is_directory)

    def delete(self, path: str) -> None:
        """Remove whatever has this name; a link goes, never what it points at."""
        with suppress(OSError):
            os.rmdir(path)  # an empty directory, as most partitions of failed and test jobs are, takes one system call
            return
        for _ in range(3):
            try:
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
                return
            except FileNotFoundError:  # another one deletes here too
                if not os.path.lexists(path):
                    return

    def summarize(self, path: str) -> DirectorySummary:
        """Count the files below a directory, or one file; those that go meanwhile are passed over."""
        files = size = 0
        for folder, names, leaves in os.walk(path, onerror=_raise_unless_gone):
            names[:] = [name for name in names if not is_hidden(name)]
            for leaf in leaves:
                if not is_hidden(leaf):
                    with suppress(FileNotFoundError):
                        size += os.lstat(os.path.join(folder, leaf)).st_size
                        files += 1
        if not files and os.path.isfile(path):
            return DirectorySummary(1, os.path.getsize(path))
        return DirectorySummary(files, size)


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def _copy(old: str, new: str, *, is_directory: bool) -> None:
    """Move between devices: nothing of the copy stays if it fails; a source that can not be removed wholly is only logged."""
    try:
        if is_directory:
            os.mkdir(new)
            shutil.copytree(old, new, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(old, new, follow_symlinks=False)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        with suppress(OSError):
            os.unlink(new)
        raise
    try:
        shutil.rmtree(old) if is_directory else os.unlink(old)
    except OSError:
        log.exception("directory was copied to another device but not removed", path=old, copy=new)
