"""A JSON web token of an identity provider, for Thrift over HTTP. Source: RFC 6750."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bearer:
    """A token that every bearer may use; it is sent with each request."""

    token: str = field(repr=False)
