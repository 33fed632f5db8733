"""The user whom a client's certificate names. TLS has checked it before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metastore.wire.auth.sasl import ClientRefused

_ALTERNATIVES = {"dns": "DNS", "email": "email", "uri": "URI"}
_SHORT = {
    "commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C", "localityName": "L",
    "stateOrProvinceName": "ST", "domainComponent": "DC", "userId": "UID",
}  # fmt: skip


def user_of(certificate: Mapping[str, Any], which: str) -> str:
    """Return the name that the setting `certificate_user` asks for, from a certificate as `SSLSocket.getpeercert` gives it.

    A distinguished name is written as RFC 4514 says, the last part first. Raises ClientRefused if the certificate lacks the name.
    """
    parts = [(kind, value) for part in certificate.get("subject", ()) for kind, value in part]
    if which == "dn":
        name = ",".join(f"{_SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in reversed(parts))
    elif which == "cn":
        name = next((value for kind, value in reversed(parts) if kind == "commonName"), "")
    else:
        name = next((value for kind, value in certificate.get("subjectAltName", ()) if kind == _ALTERNATIVES[which]), "")
    if not name:
        raise ClientRefused(f"The client's certificate has no {which}, which the setting certificate_user takes for the user")
    return name


def _escaped(value: str) -> str:
    return "".join(f"\\{letter}" if letter in ',+"\\<>;=' else letter for letter in value)
