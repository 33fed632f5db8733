"""Load the class that a setting names as `package.module:Class`. This module never makes an object of it."""

from __future__ import annotations

import importlib
from typing import TypeVar

from metastore.config.values import ConfigError

T = TypeVar("T")


def load_class(path: str, base: type[T], what: str, *, unknown: str, wrong: str) -> type[T]:
    """Return a class that derives from `base`.

    ConfigError, which calls the class `what`. The message ends with `unknown` where the path is not `module:Class`, and with `wrong` where
    it does not name a class that derives from `base`.
    """
    module, separator, name = path.partition(":")
    if not separator or not module or not name:
        raise ConfigError(f"{what} {path!r} {unknown}")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise ConfigError(f"{what} {path!r} can not be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, type) or not issubclass(found, base):
        raise ConfigError(f"{what} {path!r} {wrong}")
    return found
