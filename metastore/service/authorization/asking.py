"""Put questions to a server over HTTP and remember its answers for a moment. Where it does not answer, nothing is allowed."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from metastore.config import Config, without_passwords
from metastore.errors import MetaError
from metastore.service.authorization.administered import Administered
from metastore.service.authorizer import ADMINISTER, CONNECTOR, SERVER, Access, Who

MOST_REMEMBERED = 100_000
"""The most answers that one process remembers."""
MOST_AT_ONCE = 1000
"""The most accesses in one request to the server."""


class Asking(Administered):
    """The base of `opa` and `ranger`: a subclass implements `ask`."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if not config.authorization_url:
            raise MetaError(f"authorization {config.authorization} needs the setting authorization_url: name the server to ask")
        try:
            import httpx
        except ImportError as error:
            raise MetaError(
                f"authorization {config.authorization} needs httpx: pip install '.[authorization]' in the checkout of metastore"
            ) from error
        self.url = config.authorization_url.rstrip("/")
        self._seconds = config.authorization_cache
        token = config.authorization_token
        self._client = httpx.Client(
            timeout=config.authorization_timeout, headers={"Authorization": f"Bearer {token}"} if token else {}, follow_redirects=False
        )
        self._error = httpx.HTTPError
        self._known: dict[tuple[Who, Access], tuple[float, bool]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def decide(self, who: Who, asked: Sequence[Access]) -> list[bool]:
        """Answer from the remembered decisions, and ask for the rest together. MetaError without an answer."""
        # Policies of other servers have no data connectors, and their parameters hold passwords: only administrators may use them.
        asked = [Access(ADMINISTER, SERVER) if each.kind == CONNECTOR else each for each in asked]
        now = time.monotonic()
        found = [self._known.get((who, each)) for each in asked]
        missing = [each for each, known in zip(asked, found, strict=True) if known is None or known[0] <= now]
        answers: dict[Access, bool] = {}
        if missing:
            unique = list(dict.fromkeys(missing))
            parts = (unique[at : at + MOST_AT_ONCE] for at in range(0, len(unique), MOST_AT_ONCE))
            answers = {each: ok for part in parts for each, ok in zip(part, self.ask(who, part), strict=True)}
            self._remember(who, answers, now + self._seconds)
        return [answers[each] if each in answers else bool(known and known[1]) for each, known in zip(asked, found, strict=True)]

    def _remember(self, who: Who, answers: dict[Access, bool], until: float) -> None:
        with self._lock:
            if len(self._known) + len(answers) > MOST_REMEMBERED:
                self._known.clear()
            self._known.update(((who, each), (until, answer)) for each, answer in answers.items())

    def ask(self, who: Who, asked: Sequence[Access]) -> Sequence[bool]:
        """Ask the server about at most `MOST_AT_ONCE` accesses together. MetaError."""
        raise NotImplementedError

    def post(self, path: str, body: Any) -> Any:
        """Return the JSON object that the server answers. MetaError."""
        try:
            reply = self._client.post(f"{self.url}/{path}", json=body)
            reply.raise_for_status()
            value = reply.json()
        except (self._error, ValueError) as error:
            raise self.unanswered(path, f"gave no answer: {error}") from error
        if not isinstance(value, dict):
            raise self.unanswered(path, "did not return a JSON object")
        return value

    def unanswered(self, path: str, why: str) -> MetaError:
        """Return the error for a missing or malformed answer, which allows nothing."""
        return MetaError(without_passwords(f"nothing is allowed: the authorization server at {self.url}/{path} {why}"))
