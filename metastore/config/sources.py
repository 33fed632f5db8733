"""Collect the settings: defaults, hive-site.xml, TOML, environment, options, assignments; a later source overrides an earlier one.

An unknown name in this server's form is an error. A foreign Hive property is kept in `Config.other`, and `hive_properties` judges it.
The database settings of Java's metastore are ignored with a warning, because its schema is another one. Never opens a database.
"""

from __future__ import annotations

import difflib
import getpass
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from metastore.config.hive_properties import logins
from metastore.config.settings import Config, by_name, check, settings
from metastore.config.values import ConfigError, Value, parse

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_OPTIONS = {"host", "port", "workers"}
"""Names of settings that are names of options of file systems too."""

Found = tuple[str, object, str]
"""A name as it was written, its value, and its source."""


def load(
    options: Mapping[str, object] | None = None,
    *,
    config_file: str | Path | None = None,
    hive_site: str | Path | None = None,
    assignments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Read all sources and return the settings.

    `options` are the command line's, by setting, None where not given; `assignments` are its `KEY=VALUE` texts.
    `config_file` and `hive_site` may also come from METASTORE_CONFIG and METASTORE_HIVE_SITE. Raises ConfigError.
    """
    environment = os.environ if environment is None else environment
    hive_site = hive_site or environment.get("METASTORE_HIVE_SITE")
    config_file = config_file or environment.get("METASTORE_CONFIG")
    collected = _Collected()
    collected.add(_hive_site(Path(hive_site)) if hive_site else ())
    collected.add(_toml(Path(config_file)) if config_file else ())
    collected.add(_environment(environment, collected.warnings))
    given = {name: value for name, value in (options or {}).items() if value is not None}
    collected.add((name, value, f"--{name.replace('_', '-')}") for name, value in given.items())
    collected.add(_assignments(assignments))
    collected.take_logins()
    return Config(
        **collected.values,
        sources=collected.sources,
        hive=collected.hive,
        other=collected.other,
        warnings=tuple(collected.warnings),
    )


def changed(config: Config, name: str, text: str, source: str) -> Config:
    """Return the settings with one value changed, by any name of it; an unknown name is kept as a Hive property. ConfigError."""
    setting = by_name().get(name)
    if setting is None:
        return replace(config, other={**config.other, name: text})
    return replace(config, **{setting.name: _value(setting.name, text, source)})  # type: ignore[arg-type]  # a setting's own type


class _Collected:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.hive: dict[str, str] = {}
        self.other: dict[str, str] = {}
        self.warnings: list[str] = []

    def add(self, found: Iterable[Found]) -> None:
        for written, value, source in found:
            if "." in written:
                self.hive.pop(written, None)  # the one that was given last is last
                self.hive[written] = source
            if written.startswith("javax.jdo.option."):
                self._leave_aside(written, source)
                continue
            setting = by_name().get(written) or by_name().get(written.replace("-", "_"))
            if setting is not None:
                self.values[setting.name] = _value(setting.name, value, source)
                self.sources[setting.name] = source
            elif "." in written:
                self.other[written] = str(value).lower() if isinstance(value, bool) else str(value)
            else:
                raise ConfigError(f"unknown setting {written} ({source}){_nearest(written)}")

    def take_logins(self) -> None:
        """Derive `authentication` from Hive's properties for logins, unless it is given."""
        if "authentication" not in self.values and (found := logins(self.hive, self.other, self.values)) is not None:
            self.values["authentication"], self.sources["authentication"] = found

    def _leave_aside(self, written: str, source: str) -> None:
        if written.endswith("ConnectionURL"):
            self.warnings.append(
                f"{written} ({source}) is not used: the database of a Java metastore has another schema. "
                "Name this server's own database with --db or METASTORE_DB."
            )


def _value(name: str, value: object, source: str) -> Value:
    setting = by_name()[name]
    try:
        parsed = parse(value, setting.default, setting.unit)
    except ValueError as error:
        shown = "the value" if setting.secret else repr(value)
        raise ConfigError(f"setting {name} ({source}): {shown} does not fit: {error}") from error
    if parsed == "" and setting.default is None:
        return None
    try:
        check(setting, parsed)
    except ConfigError as error:
        raise ConfigError(f"{error} ({source})") from None
    return parsed


def _nearest(written: str) -> str:
    near = difflib.get_close_matches(written.replace("-", "_"), [setting.name for setting in settings()], n=1)
    return f"; did you mean {near[0]}?" if near else "; `metastore config` lists all settings"


def _hive_site(path: Path) -> Iterator[Found]:
    """Yield the properties of a Hadoop configuration file, with `${name}` and `${env.NAME}` replaced as Hadoop does."""
    try:
        root = ElementTree.fromstring(path.read_bytes())  # noqa: S314 - the operator's own file, trusted like the command line
    except OSError as error:
        raise ConfigError(f"can not read the Hive configuration {path}: {error.strerror}") from error
    except ElementTree.ParseError as error:
        raise ConfigError(f"the Hive configuration {path} is not well-formed XML: {error}") from error
    if root.tag != "configuration":
        raise ConfigError(f"the Hive configuration {path} begins with <{root.tag}>, expected <configuration>")
    if any(str(item.tag).endswith("}include") for item in root.iter()):
        raise ConfigError(f"the Hive configuration {path} includes another file, which is not read: write all properties into one file")
    properties: dict[str, str] = {}
    for item in root.iter("property"):
        name, value = item.findtext("name"), item.findtext("value")
        if name and value is not None:
            properties[name.strip()] = value.strip()
    for name, value in properties.items():
        yield name, _expand(value, properties), f"{path}"


def _expand(text: str, properties: Mapping[str, str], depth: int = 20) -> str:
    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("env."):
            return os.environ.get(name[4:], match[0])
        if name == "user.name":
            return getpass.getuser()
        return str(Path.home()) if name == "user.home" else properties.get(name, match[0])

    expanded = re.sub(r"\$\{([^${}]+)\}", replace, text)
    return expanded if expanded == text or not depth else _expand(expanded, properties, depth - 1)


def _toml(path: Path) -> Iterator[Found]:
    try:
        text = path.read_text("utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"can not read the settings file {path}: {error.strerror}") from error
    except ValueError as error:  # UnicodeDecodeError, or tomllib.TOMLDecodeError
        raise ConfigError(f"the settings file {path} is not valid TOML: {error}") from error
    _refuse_sections(path, text, content)
    yield from _flatten(content, "", str(path))


def _refuse_sections(path: Path, text: str, content: Mapping[str, object]) -> None:
    """Raise ConfigError for a section that is not a setting, and for a setting in a section, where it would be the name of an option."""
    mappings = [setting.name for setting in settings() if isinstance(setting.default, Mapping)]
    allowed = " and ".join(f"[{name}.NAME]" for name in mappings)
    stand = f"settings belong at the top of the file, before all sections; only {allowed} are sections"
    for found in re.finditer(r"(?m)^[ \t]*\[+[ \t]*([\w-]+)", text):
        section = found[1]
        if isinstance(content.get(section), Mapping | list) and section.replace("-", "_") not in mappings:
            raise ConfigError(
                f"the settings file {path} has a section [{section}], line {text.count(chr(10), 0, found.end()) + 1}: {stand}"
            )
    for section, table in content.items():
        if section.replace("-", "_") in mappings and isinstance(table, Mapping):
            for name, options in [(section, table), *((f"{section}.{key}", value) for key, value in table.items())]:
                inner = set(options) & {each.name for each in settings()} - _OPTIONS if isinstance(options, Mapping) else ()
                for setting in sorted(inner):
                    raise ConfigError(f"the settings file {path} has {setting} in the section [{name}]: {stand}")


def _flatten(table: Mapping[str, object], prefix: str, source: str) -> Iterator[Found]:
    """Join the keys of tables with dots, so that `hive.metastore.port = 1` is Hive's name. A table that is a setting's value stays."""
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, Mapping) and name.replace("-", "_") not in by_name():
            yield from _flatten(value, f"{name}.", source)
        else:
            yield name, value, source


def _environment(environment: Mapping[str, str], warnings: list[str]) -> Iterator[Found]:
    """Yield the METASTORE_... variables of settings, without METASTORE_PORT=tcp://..., which Kubernetes sets for a service `metastore`."""
    own = {setting.environment: setting.name for setting in settings()}
    for variable, value in environment.items():
        name = own.get(variable)
        if name == "port" and value.startswith("tcp://"):
            warnings.append(f"METASTORE_PORT={value} is not used: it is not a port number, but a value that Kubernetes sets")
        elif name:
            yield name, value, f"environment {variable}"
        elif variable.startswith("METASTORE_") and (near := difflib.get_close_matches(variable, own, n=1, cutoff=0.85)):
            warnings.append(f"the environment variable {variable} is not used; did you mean {near[0]}?")


def _assignments(assignments: Sequence[str]) -> Iterator[Found]:
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {assignment}: expected KEY=VALUE")
        yield name.strip(), value, f"--set {name.strip()}"
