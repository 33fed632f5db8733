"""Print the settings as the Markdown of `docs/settings.md`: `python -m metastore.config.document > docs/settings.md`.

A test compares the file with what this prints. Never reads a configuration.
"""

from __future__ import annotations

from collections.abc import Iterator

from metastore.config.settings import Setting, settings
from metastore.config.values import render

_HEAD = """# Settings

Generated from `metastore/config/settings.py` by `python -m metastore.config.document`; do not edit.

A value is taken from, later ones win: the default, `hive-site.xml` (`--hive-site FILE` or `METASTORE_HIVE_SITE`),
TOML (`--config FILE` or `METASTORE_CONFIG`), the environment (`METASTORE_` and the setting's name in capitals), the
command line's options, `--set NAME=VALUE`. `NAME` is ours or any of Hive's. `metastore config` shows every value and
where it came from.

Durations may have a unit (`300s`, `5m`, `1d`), sizes too (`100MiB`). Lists are separated by commas. In the
environment, mappings are JSON. A property of Hive that is not listed here is kept, so that clients can ask for it, and
has no effect; the database settings of a Java metastore (`javax.jdo.option...`) are left aside, because its schema is
another one.
"""


def document() -> str:
    """Return the whole page."""
    return _HEAD + "".join(_rows())


def _rows() -> Iterator[str]:
    for setting in settings():
        if setting.group:
            yield f"\n## {setting.group}\n\n| setting | default | meaning | in Hive |\n|---|---|---|---|\n"
        yield f"| `{setting.name}` | {_default(setting)} | {setting.doc} | {_names(setting)} |\n"


def _default(setting: Setting) -> str:
    text = render(setting.default, setting.unit)
    suffix = f" {setting.unit}" if isinstance(setting.default, int) and setting.unit else ""
    return f"`{text}`{suffix}" if text and text != "{}" else ""


def _names(setting: Setting) -> str:
    return "<br>".join(f"`{name}`" for name in setting.hive)


if __name__ == "__main__":
    print(document(), end="")  # noqa: T201 - this module is a command
