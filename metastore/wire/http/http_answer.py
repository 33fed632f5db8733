"""The answer to a request of HTTP, independent of the way in which it is sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from metastore.wire.messages.large_replies import LargeReply


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer to a request."""

    status: int
    body: bytes | LargeReply = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()

    def blocks(self) -> Iterable[bytes]:
        """Return the parts of the body. A large reply can be read only once."""
        return self.body.blocks() if isinstance(self.body, LargeReply) else (self.body,)
