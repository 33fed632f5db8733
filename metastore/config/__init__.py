"""Hold every setting of the server in one frozen object, with the source of each value.

`settings` declares them, `values` reads and writes them as text, `sources` collects them from files, environment and options,
`hive_properties` judges the properties under Hive's names, `document` prints `docs/settings.md` and `docs/hive-properties.md`, `classes`
loads a class that a setting names. Nothing here acts on a setting.
"""

from metastore.config.settings import Config, Setting, settings, shown
from metastore.config.sources import changed, load
from metastore.config.values import ConfigError
from metastore.secrecy import names_secret, without_passwords

__all__ = ["Config", "ConfigError", "Setting", "changed", "load", "names_secret", "settings", "shown", "without_passwords"]
