"""The groups of a user whose login brings none, by the setting `group_mapping`. It never caches: the system does."""

from __future__ import annotations

import grp
import os
import pwd

from metastore.config import Config


def groups_of(config: Config, user: str) -> tuple[str, ...]:
    """Return the names of a user's groups, the primary one first; none for a user who is unknown to the system."""
    if config.group_mapping == "none":
        return ()
    try:
        primary = pwd.getpwnam(user).pw_gid
    except KeyError:
        return ()
    return tuple(name for gid in os.getgrouplist(user, primary) if (name := _name(gid)) is not None)


def _name(gid: int) -> str | None:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return None
