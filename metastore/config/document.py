"""Print pages of the documentation: `python -m metastore.config.document > docs/settings.md`, with `hive` > docs/hive-properties.md.

A test compares the files with this output. Never reads a configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from metastore.config.hive_properties import NOT_NEEDED, PROMISES
from metastore.config.settings import Setting, settings
from metastore.config.values import render

_HEAD = """# Settings

Generated from `metastore/config/settings.py` by `python -m metastore.config.document`; do not edit.

A value is taken from these sources, of which later ones win: the default, `hive-site.xml` (`--hive-site FILE` or `METASTORE_HIVE_SITE`),
TOML (`--config FILE` or `METASTORE_CONFIG`), the environment (`METASTORE_` and the setting's name in capitals), the
command line's options, `--set NAME=VALUE`. `NAME` is one of these or of Hive's. `metastore config` shows every value and
its source.

Durations may have a unit (`300s`, `5m`, `1d`), sizes too (`100MiB`). Lists are separated by commas. In the
environment, mappings are JSON. In TOML settings are at the top of the file, before sections such as `[proxy_users.trino]`.
[Properties of Hive](hive-properties.md) lists the effect of the properties in an existing `hive-site.xml`.
"""

_HIVE_HEAD = """# Properties of Hive

Generated from `metastore/config/` by `python -m metastore.config.document hive`; do not edit.

A server reads an existing `hive-site.xml` (`--hive-site FILE` or `METASTORE_HIVE_SITE`). Check the effect of each property first:

```sh
metastore config --hive-site hive-site.xml --check     # status 0 if a server would start with it
```

Each property is one of these:

| outcome | meaning |
|---|---|
| used | it is the named setting |
| not needed | the server has no need of it, or it is for clients or for Hive's engine |
| not used | it has no effect; it is kept so that clients can ask for it |
| refused | it asks for more safety than the settings provide: the server does not start |

The log counts the properties without effect at each start. Passwords in a Java credential store
(`hadoop.security.credential.provider.path`) are not read: give them as settings.

## Promises of safety

If a property promises more safety than the settings provide, the server does not start, and the error names the setting. To do without
the protection of `authentication` or `authorization`, set it explicitly (`authentication = ["anonymous"]`, `authorization = "none"`): the
log then warns at each start. TLS has no such setting: change the property, or overrule it with `--set NAME=false`.

| property | asks for | to do | decided by |
|---|---|---|---|
"""

_TAKEN = """
Properties of logins are used if the file has all that they need:

| property | setting |
|---|---|
| `hive.metastore.sasl.enabled=true`, `hive.metastore.authentication=KERBEROS` | `authentication = ["kerberos", "token"]` |
| `hive.metastore.authentication=LDAP` | `authentication = ["ldap"]` |
| `hive.metastore.authentication=JWT` | `authentication = ["jwt"]` |

## Used

| property | setting |
|---|---|
"""

_NOT_NEEDED = """
## Not needed

| property | why |
|---|---|
"""


def document() -> str:
    """Return the whole page."""
    return _HEAD + "".join(_rows())


def hive_document() -> str:
    """Return the page of Hive's properties."""
    promises = "".join(
        f"| {_code(each.names)} | {each.wants} | {each.remedy} | `{each.setting}`{', which must provide it' if each.binding else ''} |\n"
        for each in PROMISES
    )
    used = sorted((name, setting.name) for setting in settings() for name in setting.hive)
    used.append(("hadoop.proxyuser.NAME.hosts, .groups, .users", "proxy_users"))
    taken = "".join(f"| `{name}` | `{setting}` |\n" for name, setting in used)
    return _HIVE_HEAD + promises + _TAKEN + taken + _NOT_NEEDED + "".join(f"| `{name}` | {why} |\n" for name, why in NOT_NEEDED)


def _code(names: tuple[str, ...]) -> str:
    return "<br>".join(f"`{name}`" for name in names)


def _rows() -> Iterator[str]:
    for setting in settings():
        if setting.group:
            yield f"\n## {setting.group}\n\n| setting | default | meaning | in Hive |\n|---|---|---|---|\n"
        yield f"| `{setting.name}` | {_default(setting)} | {setting.doc} | {_code(setting.hive)} |\n"


def _default(setting: Setting) -> str:
    text = render(setting.default, setting.unit)
    suffix = f" {setting.unit}" if isinstance(setting.default, int) and setting.unit else ""
    return f"`{text}`{suffix}" if text and text != "{}" else ""


if __name__ == "__main__":
    print(hive_document() if sys.argv[1:] == ["hive"] else document(), end="")  # noqa: T201 - this module is a command
