"""Compute the place of deleted data in the trash, as Hadoop's TrashPolicyDefault lays it out: HOME/.Trash/Current/<path>.

Never moves anything itself, and never empties the trash: Hadoop's own emptier, or `hdfs dfs -expunge`, does.
"""

from __future__ import annotations

import os
from getpass import getuser
from pathlib import Path

from metastore.errors import MetaError
from metastore.warehouse.locations import Location, is_below, prefix


def trash_root(location: Location) -> str:
    """Return the location of the trash for data of one file system: in the user's home there.

    That is the real home for local files and /user/NAME elsewhere.
    """
    home = str(Path.home()) if location.protocol == "file" else f"/user/{own_user()}"
    return f"{prefix(location)}{home}/.Trash"


def own_user() -> str:
    """Return the name of the user who runs the server."""
    try:
        return getuser()
    except (KeyError, OSError):  # a container's user without an entry in the system's list
        return str(os.getuid())


def place_in_trash(text: str, location: Location) -> str | None:
    """Return the place of a location in the trash; None for one that is there already. MetaError for one that holds the trash."""
    root = trash_root(location)
    if is_below(text, root):
        return None
    if is_below(root, text):
        raise MetaError(f"{text} can not be moved to the trash, as it contains the trash")
    return f"{root}/Current{location.path.rstrip('/')}"
