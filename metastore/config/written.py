"""Write settings as a TOML file, with the judgement on each Hive property, as the beginning of a configuration of this server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from metastore.config import hive_properties
from metastore.config.settings import Config, Setting, settings
from metastore.config.values import Value, render
from metastore.secrecy import names_secret

_HEADS = {
    "refused": "To be decided: until then a server does not start",
    "not used": "Not used here, and kept for clients that ask for them",
    "not needed": "Not needed here",
}
"""Headings by judgement on properties, in the order in which they are written."""


def toml(config: Config, origin: str) -> str:
    """Return the given settings as the text of a file. Secrets are left out; the variables that take them are named."""
    lines = [f"# Made from {origin}.", "# db: name this server's own database, such as postgresql://USER:PASSWORD@HOST/metastore", ""]
    given = [setting for setting in settings() if setting.name in config.sources and setting.name != "db"]
    lines += [_line(config, setting) for setting in given]
    judged = list(hive_properties.verdicts(config))
    for outcome, head in _HEADS.items():
        found = [each for each in judged if each.outcome == outcome]
        if found:
            lines += ["", f"# {head}"]
            lines += [text for each in found for text in _property(config.other, each)]
    return "\n".join(lines) + "\n"


def _line(config: Config, setting: Setting) -> str:
    if setting.secret:
        return f"# {setting.name}: a secret; set it by {setting.environment}"
    return f"{setting.name} = {_literal(getattr(config, setting.name), setting.unit)}"


def _literal(value: Value, unit: str) -> str:
    if isinstance(value, bool) or (isinstance(value, int) and not unit):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(json.dumps(each, ensure_ascii=False) for each in value)}]"
    return json.dumps(render(value, unit) or "", ensure_ascii=False)


def _property(values: Mapping[str, str], judged: hive_properties.Verdict) -> Iterator[str]:
    if judged.outcome == "not used" and judged.name in values and not names_secret(judged.name):
        yield f"{json.dumps(judged.name)} = {json.dumps(values[judged.name], ensure_ascii=False)}"
    else:
        yield f"# {judged.name}: {judged.text}"
