"""Work on local files: make, rename, delete and count, so that no other process's files are taken. It works on paths, not on locations.

Paths are absolute and have no slash at their end. Every method raises the errors of the operating system.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress

import structlog

from metastore.call_time import uses_files
from metastore.errors import MetaError
from metastore.hidden import is_hidden
from metastore.warehouse.summary import DirectorySummary

log = structlog.get_logger()


class CanNotRename(MetaError):
    """A directory that the system does not rename: a mount point, or one in a layer of an image."""


@uses_files
class LocalFiles:
    """The files of this machine; has the methods of `RemoteFiles`."""

    makes_directories = True
    is_remote = False

    def exists(self, path: str) -> bool:
        """Return whether something of this name exists, a broken link too."""
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def look(self, path: str) -> bool | None:
        """Return True for a directory, False for anything else, None for nothing. It is one look: the path may change meanwhile."""
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        return stat.S_ISDIR(mode) or (stat.S_ISLNK(mode) and os.path.isdir(path))

    def is_empty(self, path: str) -> bool:
        """Return whether a directory is empty; FileNotFoundError if it is missing."""
        with os.scandir(path) as entries:
            return next(entries, None) is None

    def entries(self, path: str) -> list[tuple[str, bool]]:
        """Return (name, is a directory) of the entries of a directory; FileNotFoundError if it is missing."""
        with os.scandir(path) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries]

    def read(self, path: str, most: int | None = None) -> bytes:
        """Return the content of a small file, or its first bytes; FileNotFoundError if it is missing."""
        with open(path, "rb") as file:
            return file.read(most)

    def write(self, path: str, data: bytes) -> None:
        """Make a small file, or overwrite it."""
        with open(path, "wb") as file:
            file.write(data)

    def is_writable(self, path: str) -> bool:
        """Return whether entries can be removed from a directory."""
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
        """Remove an empty directory; OSError for any other."""
        os.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        """Give a directory, file or link another name; FileExistsError when that is taken.

        The name is claimed first, since the system's rename replaces an empty directory without an error.
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

    def set_aside(self, old: str, new: str, *, may_remove: bool) -> bool:
        """Rename to a name that nothing else uses; with `may_remove` a directory that is empty is removed instead.

        Returns whether it was renamed. CanNotRename, FileNotFoundError.
        """
        if may_remove:
            try:
                os.rmdir(old)
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY}:
                    raise
            else:
                return False
        try:
            os.rename(old, new)
        except OSError as error:
            if error.errno in {errno.EXDEV, errno.EBUSY}:
                raise CanNotRename(f"{old} is not renamed: {error.strerror}") from error
            raise
        return True

    def merge(self, here: str, there: str) -> None:
        """Rename a directory, if it is there. Where the new name is taken, move its content there; FileExistsError if files remain."""
        if not os.path.lexists(here):
            return
        with suppress(OSError):
            os.rmdir(there)
        try:
            self.rename(here, there)
        except FileExistsError:
            if not (os.path.isdir(here) and os.path.isdir(there)):
                raise
            for name in os.listdir(here):
                self.merge(os.path.join(here, name), os.path.join(there, name))
            os.rmdir(here)

    def stamps(self, path: str) -> dict[str, object]:
        """Return the stamps, by path, of the files and links at or below a path. An unchanged file keeps its stamp."""
        out: dict[str, object] = {}
        leaves = [path] if not os.path.isdir(path) or os.path.islink(path) else []
        for folder, names, files in os.walk(path, onerror=_raise_unless_gone) if not leaves else ():
            leaves += [os.path.join(folder, name) for name in files]
            leaves += [link for name in names if os.path.islink(link := os.path.join(folder, name))]
        for leaf in leaves:
            with suppress(FileNotFoundError):
                found = os.lstat(leaf)
                out[leaf] = (found.st_ino, found.st_size, found.st_mtime_ns)
        return out

    def delete_files(self, path: str, names: Iterable[str], *, keep: bool) -> None:
        """Remove files below a directory, then the empty directories inside it and, unless `keep`, the directory itself if it is empty."""
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name)
        self._remove_empty_tree(path, keep=keep)

    def move_files(self, path: str, names: Iterable[str], target: str, *, keep: bool) -> None:
        """Move files below a directory to another one, then remove empty directories as `delete_files` does."""
        for name in names:
            new = target + name[len(path) :]
            self.make_all(os.path.dirname(new), 0o700)
            self.rename(name, new)
        self._remove_empty_tree(path, keep=keep)

    def _remove_empty_tree(self, path: str, *, keep: bool) -> None:
        for folder, _, _ in os.walk(path, topdown=False):
            if folder != path or not keep:
                with suppress(OSError):
                    os.rmdir(folder)

    def delete(self, path: str) -> None:
        """Remove the file, directory or link of this name; a link is removed itself, never its target."""
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
        """Count the files below a directory, or one file; files that are deleted meanwhile are ignored."""
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
