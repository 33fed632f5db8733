"""Pages of the server itself, for administrators: clients, slow calls, jobs, settings."""

from __future__ import annotations

import time
from dataclasses import dataclass

from metastore.config import Config, settings, shown
from metastore.console.visit import Visit
from metastore.service.operations.watched import ConnectedClient, SlowCall


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients that are connected to any worker process of this server."""

    clients: list[ConnectedClient]


def clients(visit: Visit) -> Clients:
    """List the clients that are connected to this server."""
    return Clients(list(visit.run("show_clients", look=visit.clients)))


@dataclass(frozen=True, slots=True)
class SlowCalls:
    """The slow calls that are kept, the newest first."""

    slow_calls: list[SlowCall]


def slow_calls(visit: Visit) -> SlowCalls:
    """List the calls that took long, the newest first."""
    return SlowCalls(list(visit.run("show_slow_calls", look=visit.slow_calls)))


@dataclass(frozen=True, slots=True)
class Job:
    """A periodic job, its present holder, and the end of the lease, in milliseconds."""

    name: str
    holder: str | None
    until: int
    running: bool


@dataclass(frozen=True, slots=True)
class Jobs:
    """The periodic jobs of all servers that share the database."""

    rows: list[Job]


def jobs(visit: Visit) -> Jobs:
    """List the periodic jobs, and which server's worker process has each."""
    now = time.time() * 1000
    return Jobs([Job(each.name, each.holder, each.expires, each.expires > now) for each in visit.run("show_jobs")])


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of this server, the source of its value, and its meaning."""

    name: str
    value: str
    source: str
    meaning: str


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """Settings about one matter."""

    title: str
    settings: list[Setting]


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings in the order of the documentation."""

    groups: list[SettingGroup]
    warnings: list[str]


def all_settings(visit: Visit) -> Settings:
    """List every setting, its value and where it came from; secrets are not shown."""
    config: Config = visit.run("show_settings")
    groups: list[SettingGroup] = []
    for setting in settings():
        if setting.group:
            groups.append(SettingGroup(setting.group, []))
        groups[-1].settings.append(Setting(setting.name, shown(config, setting), config.source(setting.name), setting.doc))
    return Settings(groups, list(config.warnings))
