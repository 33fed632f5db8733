"""Tell apart the addresses of this machine alone. It never connects."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Tell whether an address or name stands for this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False
