"""What the port answers to GET: probes, metrics, the version. Probes never need a login, so that whoever restarts servers can ask."""

from __future__ import annotations

import json
from collections.abc import Callable

import metastore
from metastore import log
from metastore.service.context import Metastore
from metastore.service.health import Readiness
from metastore.service.observations import Observation, Observer
from metastore.store import migrate
from metastore.wire.answer import Answer
from metastore.wire.codec import IMPLEMENTATION
from metastore.wire.console import Console
from metastore.wire.counts import Counts

JSON = "application/json"


class Pages:
    """The pages of one worker process."""

    def __init__(self, server: Metastore, counts: Counts, is_draining: Callable[[], bool]) -> None:
        self._readiness = Readiness(server, is_draining)
        self._observer = Observer(server)
        self._counts = counts
        self._pages: dict[str, Callable[[], Answer]] = {
            "/healthz": lambda: _json(200, status="ok"),
            "/readyz": self._ready,
            "/version": lambda: _json(200, version=metastore.__version__, codec=IMPLEMENTATION, schema=migrate.revisions()[-1]),
            "/metrics": self._metrics,
        }
        self.asking_for_login = frozenset({"/metrics"})
        """Those that tell nothing to clients without a login where others need one."""
        self.console = Console(server, counts, self._seen) if server.config.console else None
        """The web console; None where it is switched off."""

    def find(self, path: str) -> Callable[[], Answer] | None:
        """Return what makes a page, None if there is none at that path."""
        return self._pages.get(path)

    def _ready(self) -> Answer:
        problem = self._readiness.problem()
        return _json(503, status="not ready", reason=problem) if problem else _json(200, status="ready")

    def _metrics(self) -> Answer:
        from metastore.wire import metrics  # a tenth of a second, which only those wait for who look

        return Answer(200, metrics.exposition(self._counts, self._seen()), metrics.CONTENT_TYPE)

    def _seen(self) -> Observation | None:
        if self._readiness.problem():
            return None
        try:
            return self._observer.look()
        except Exception as error:  # noqa: BLE001  # the other metrics are asked for most when the database is down
            log.get("metastore.metrics").warning("the database can not be asked", reason=str(error)[:300])
            return None


def _json(code: int, **content: str) -> Answer:
    return Answer(code, json.dumps(content).encode() + b"\n", JSON)
