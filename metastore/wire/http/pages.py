"""Answers of the port to GET: probes, metrics, the version. Probes never need a login, so that a supervisor of servers can ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import metastore
from metastore import log
from metastore.console.door import Console
from metastore.errors import MetaError
from metastore.service.authorizer import ADMINISTER, SERVER, Access, Who
from metastore.service.call.context import Client, Metastore
from metastore.service.operations.health import Readiness
from metastore.service.operations.observations import Observation, Observer
from metastore.service.transactions.locks import waiting_since
from metastore.store.core import migrate
from metastore.telemetry.telemetry import Telemetry
from metastore.wire.codec import IMPLEMENTATION
from metastore.wire.http.http_answer import HttpAnswer

JSON = "application/json"


class Pages:
    """The pages of one worker process."""

    def __init__(self, server: Metastore, telemetry: Telemetry, is_draining: Callable[[], bool]) -> None:
        self._readiness = Readiness(server, is_draining)
        self._observer = Observer(server)
        self._telemetry = telemetry
        self._database = server.database
        self._names = server.config.metrics_names
        self._pages: dict[str, Callable[[], HttpAnswer]] = {
            "/healthz": lambda: _json(200, status="ok"),
            "/readyz": self._ready,
            "/version": lambda: _json(200, version=metastore.__version__, codec=IMPLEMENTATION, schema=migrate.revisions()[-1]),
            "/metrics": self._metrics,
            "/api/v1/slow-calls": lambda: _json(200, slow_calls=[asdict(each) for each in telemetry.slow_calls()]),
            "/api/v1/lock-waits": self._waits,
            "/api/v1/clients": lambda: _json(200, clients=[asdict(each) for each in telemetry.connected_clients()]),
        }
        self.asking_for_login = frozenset(self._pages) - {"/healthz", "/readyz", "/version"}
        """The pages that need a login where calls need one."""
        self._for_administrators = self.asking_for_login - {"/metrics", "/api/v1/lock-waits"}
        self._authorizer = server.authorizer
        self.console = Console(server, telemetry, self._seen) if server.config.console else None
        """The web console; None where it is switched off."""

    def find(self, path: str) -> Callable[[], HttpAnswer] | None:
        """Return the function that makes the page of a path, None without one."""
        return self._pages.get(path)

    def refusal(self, path: str, client: Client) -> HttpAnswer | None:
        """Return the refusal for a client that may not see a page: pages about all clients are for administrators."""
        if self._authorizer is None or path not in self._for_administrators:
            return None
        who = Who(client.user, tuple(client.groups))
        if self._authorizer.allowed(who, (Access(ADMINISTER, SERVER),))[0] is True:
            return None
        return HttpAnswer(
            403, f"{path} is for administrators: name {client.user or 'a user'} in admin_users, or ask as one of them".encode()
        )

    def _ready(self) -> HttpAnswer:
        problem = self._readiness.problem()
        if problem:
            return _json(503, status="not ready", reason=problem)
        warning = self._readiness.warning()
        return _json(200, status="ready", **({"warning": warning} if warning else {}))

    def _waits(self) -> HttpAnswer:
        """Return the times since which locks wait, by their ids. The ids alone reveal nothing about the locks."""
        try:
            found = waiting_since(self._database)
        except MetaError as error:
            return HttpAnswer(503, error.message.encode())
        return _json(200, waiting_since_ms={str(key): since for key, since in found.items()})

    def _metrics(self) -> HttpAnswer:
        from metastore.telemetry import metrics  # it takes a tenth of a second, and only this page needs it

        self._telemetry.publish(self._database)
        is_ready = not self._readiness.problem()
        answers = is_ready or not self._readiness.unanswered()
        state = metrics.State(IMPLEMENTATION, is_ready, answers, is_ready or (answers and not self._readiness.refusal()))
        seen = self._look() if answers else None
        return HttpAnswer(200, metrics.exposition(self._telemetry, state, seen, self._names), metrics.CONTENT_TYPE)

    def _seen(self) -> Observation | None:
        return None if self._readiness.unanswered() else self._look()

    def _look(self) -> Observation | None:
        try:
            return self._observer.look()
        except Exception as error:  # noqa: BLE001  # the other metrics are asked for most when the database is down
            log.get("metastore.metrics").warning("the database can not be asked", reason=str(error)[:300])
            return None


def _json(code: int, **content: Any) -> HttpAnswer:
    return HttpAnswer(code, json.dumps(content).encode() + b"\n", JSON)
