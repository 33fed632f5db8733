"""Keep pages of other sites from acting by a visitor's browser: the one rule for all requests over HTTP but probes.

A browser sends a page's requests to every server that its machine reaches, with the visitor's password or certificate, and names their
source in `Origin` and `Sec-Fetch-Site`. No client but a browser sends these. A site that gives its own name this machine's address (DNS
rebinding) is the same site to a browser: only `Host` differs.
"""

from __future__ import annotations

import functools
import platform
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from metastore.service.call.context import Client
from metastore.wire.http.http_answer import HttpAnswer
from metastore.wire.sockets.addresses import is_loopback

CONTENT_TYPE = "application/x-thrift"
_LOOKS = ("GET", "HEAD")


def check_page(method: str, headers: Mapping[str, str]) -> HttpAnswer | None:
    """Return the refusal of a request for a page that another site's page sends; None for others, and for a followed link."""
    site, origin = headers.get("sec-fetch-site", ""), headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return _refusal(f"This request comes from {origin[:100]}: use the pages of this server")
    if site in ("", "same-origin") or (method in _LOOKS and (site == "none" or headers.get("sec-fetch-mode") == "navigate")):
        return None
    return _refusal("This request comes from another site: use the pages of this server")


def check_thrift(headers: Mapping[str, str]) -> HttpAnswer | None:
    """Return the refusal of a message that a page of any site may have sent; None for a message of a Thrift client."""
    if by_pages := [name for name in ("Origin", "Sec-Fetch-Site") if name.lower() in headers]:
        return _refusal(f"The header {by_pages[0]} is sent by pages only: Thrift is for programs, pages of this server are at /ui")
    sent = headers.get("content-type", "")
    if sent.partition(";")[0].strip().lower() != CONTENT_TYPE:
        return HttpAnswer(415, f"The Content-Type is {sent[:100] or 'missing'}: send Thrift with Content-Type: {CONTENT_TYPE}\n".encode())
    return None


def check_name(client: Client, headers: Mapping[str, str]) -> HttpAnswer | None:
    """Return the refusal of a client on this machine without a login, if the name in its request may be another site's; else None."""
    if client.login is not None or not is_here(client) or _is_local_name(headers.get("host", "")):
        return None
    return _refusal(
        "Without a login, clients on this machine must call the server at http://localhost or http://127.0.0.1: use one of these, or log in"
    )


def is_here(client: Client) -> bool:
    """Return whether a client comes from this machine."""
    return is_loopback(client.address.rpartition(":")[0])


def _refusal(text: str) -> HttpAnswer:
    return HttpAnswer(403, f"{text}\n".encode())


def _is_local_name(host: str) -> bool:
    """Return whether a name, perhaps with a port, is this machine's for certain."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name.lower() == "localhost" or is_loopback(name.strip("[]")) or name.lower() in _names_of_this_machine()


@functools.cache
def _names_of_this_machine() -> frozenset[str]:
    """Return the host name, short and full. The full name may need a request to the name service, which is sent once."""
    return frozenset({platform.node().lower(), socket.getfqdn().lower()} - {""})
