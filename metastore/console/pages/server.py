"""Pages of the server itself, for administrators: clients, slow calls, jobs, settings."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import Any

from metastore.config import Config, settings, shown
from metastore.console.visit import Visit


def _as(cls: Any, told: Any) -> Any:
    """Return what the wire tells, as pages show it: it may tell more."""
    return cls(**{field.name: getattr(told, field.name) for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class Client:
    """A connection that is open; times are in seconds since 1970."""

    address: str
    user: str | None
    real_user: str | None
    mechanism: str
    transport: str
    worker: int
    since: float
    calls: int
    last_method: str
    last_call: float
    running: str
    """The method that runs now, "" if none does."""
    running_seconds: float


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients that are connected to any worker process of this server."""

    clients: list[Client]


def clients(visit: Visit) -> Clients:
    """List the clients that are connected to this server."""
    return Clients([_as(Client, each) for each in visit.run("show_clients", look=visit.clients)])


@dataclass(frozen=True, slots=True)
class SlowCall:
    """A call that took at least `slow_call_threshold`; times are in seconds, sizes in bytes."""

    began: float
    seconds: float
    method: str
    object: str
    arguments: str
    user: str | None
    real_user: str | None
    address: str
    query: str
    outcome: str
    elements: int
    received: int
    sent: int
    statements: int
    database_seconds: float
    lock_seconds: float
    pool_seconds: float
    worker: int


@dataclass(frozen=True, slots=True)
class SlowCalls:
    """The slow calls that are kept, the newest first."""

    slow_calls: list[SlowCall]


def slow_calls(visit: Visit) -> SlowCalls:
    """List the calls that took long, the newest first."""
    return SlowCalls([_as(SlowCall, each) for each in visit.run("show_slow_calls", look=visit.slow_calls)])


@dataclass(frozen=True, slots=True)
class Job:
    """A periodic job and who runs it, until when, in milliseconds."""

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
    """A setting of this server, where its value came from, and what it means."""

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
