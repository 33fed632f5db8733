"""JSON Web Tokens: check signature, issuer, audience and time, and take user and groups out of the claims.

Keys are read from JWKS, by URL or file, and are fetched again when a token names a key that is not among them. Sources: RFC 7519, RFC 7517,
RFC 8725 (best practices), OpenID Connect Discovery.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from metastore import log
from metastore.config import Config, ConfigError
from metastore.service.call.identity import Login
from metastore.wire.auth.sasl import ClientRefused

try:
    from joserfc import jws, jwt
    from joserfc.errors import BadSignatureError, JoseError
    from joserfc.jwk import Key, KeySet
except ImportError as error:
    raise ConfigError("authentication by jwt needs a library: pip install '.[jwt]' in the checkout of metastore") from error

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512"]
"""Signatures by a private key only: a public key must never serve as the secret of an HMAC, and `none` signs nothing."""
MAX_TOKEN = 16_384
LEEWAY = 60
"""Seconds that the clocks of issuer and server may differ."""
MIN_REFETCH = 10.0
"""Seconds between two fetches of the same keys, even for tokens with unknown keys."""
MAX_AGE = 300.0
"""Seconds after which keys are fetched again, so that a withdrawn one is no longer taken."""
MAX_STALE = 3600.0
"""Seconds for which old keys are still used while they can not be fetched again."""
MOST_TRIED = 20
"""The most keys that are tried on one token: each takes time."""
TIMEOUT = 5.0
MAX_JWKS = 1 << 20


@dataclass(slots=True)
class Issuer:
    """An issuer whose tokens are accepted, and its keys."""

    name: str | None
    """The claim `iss` of its tokens; None accepts any."""
    url: str | None
    """The URL of its JWKS; if it is None, the issuer's OpenID configuration has the URL."""
    keys: KeySet | None = None
    fetched_at: float = float("-inf")
    tried_at: float = float("-inf")
    lock: threading.Lock = field(default_factory=threading.Lock)


class Tokens:
    """Checks tokens for all connections of a process. Safe for threads."""

    def __init__(self, config: Config) -> None:
        """Raises ConfigError for settings that do not fit together."""
        urls, names = config.jwt_jwks_urls, config.jwt_issuers
        if not urls and not names:
            raise ConfigError("authentication by jwt needs jwt_jwks_urls or jwt_issuers")
        if urls and names and len(urls) != len(names):
            raise ConfigError(f"jwt_issuers names {len(names)} issuers and jwt_jwks_urls {len(urls)} URLs; each issuer needs its own URL")
        for url in urls or names:
            if not is_trustworthy(url) and not url.startswith("file:"):
                raise ConfigError(f"the keys of tokens at {url} could be exchanged on their way; use https: or file:")
        self._issuers = [Issuer(names[at] if names else None, urls[at] if urls else None) for at in range(max(len(urls), len(names)))]
        self._audiences = set(config.jwt_audiences)
        self._user_claim = config.jwt_user_claim
        self._groups_claim = config.jwt_groups_claim

    def check(self, token: str) -> Login:
        """Return the login that a token proves. Raises ClientRefused."""
        if len(token) > MAX_TOKEN:
            raise ClientRefused(f"The token has {len(token)} characters, more than {MAX_TOKEN}")
        last = ClientRefused("The token fits no issuer")
        for issuer in self._issuers:
            try:
                return self._login(self._claims(issuer, token), issuer)
            except ClientRefused as error:
                last = error
        raise last

    def _claims(self, issuer: Issuer, token: str) -> dict[str, Any]:
        """Return the claims of a token that one of the issuer's keys signed. Raises ClientRefused."""
        try:
            header = jws.extract_compact(token.encode()).headers()
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise ClientRefused(f"This is not a signed token ({type(error).__name__}: {str(error)[:200]})") from None
        reason = f"it has none of type {header.get('alg')} named {header.get('kid')}"
        for fresh in (False, True):
            for key in _fitting(_keys(issuer, fresh=fresh), header):
                try:
                    return dict(jwt.decode(token, key, algorithms=ALGORITHMS).claims)
                except BadSignatureError:
                    reason = "its signature is wrong"
                except (JoseError, ValueError, TypeError, KeyError) as error:
                    reason = f"{type(error).__name__}: {error}"
        raise ClientRefused(f"The token is not signed by a key of this server's issuer ({reason[:200]})")

    def _login(self, claims: dict[str, Any], issuer: Issuer) -> Login:
        now = time.time()
        if issuer.name is not None and claims.get("iss") != issuer.name:
            raise ClientRefused(f"The token's issuer is {str(claims.get('iss'))[:200]}, not {issuer.name}")
        if not isinstance(expires := claims.get("exp"), int | float) or isinstance(expires, bool) or not expires + LEEWAY >= now:
            raise ClientRefused("The token has expired, or has no time of expiry; get a new one")
        if not isinstance(begins := claims.get("nbf", 0), int | float) or not begins - LEEWAY <= now:
            raise ClientRefused("The token is not valid yet; compare the clocks")
        meant_for = _texts(claims.get("aud"))
        if self._audiences and self._audiences.isdisjoint(meant_for):
            raise ClientRefused(
                f"The token is meant for {', '.join(meant_for)[:200] or 'nobody'}, not for {', '.join(sorted(self._audiences))}"
            )
        user = claims.get(self._user_claim)
        if not isinstance(user, str) or not user:
            raise ClientRefused(f"The token has no claim {self._user_claim}, which names the user")
        return Login(user, "jwt", groups=self._groups(claims))

    def _groups(self, claims: dict[str, Any]) -> tuple[str, ...] | None:
        if not self._groups_claim:
            return None
        found = claims.get(self._groups_claim)
        return tuple(found.replace(",", " ").split() if isinstance(found, str) else _texts(found))


def _texts(claim: object) -> list[str]:
    """Return the texts of a claim that is a text or a list of them."""
    if isinstance(claim, str):
        return [claim]
    return [each for each in claim if isinstance(each, str)] if isinstance(claim, list) else []


def _fitting(keys: KeySet, header: Mapping[str, Any]) -> list[Key]:
    """Return the suitable keys that may have signed a token: all, or the ones with the name in its header (RFC 7515, 4.1.4 and D)."""
    algorithm, name = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        return []
    kind = "EC" if algorithm.startswith("ES") else "RSA"
    found = [
        key
        for key in keys
        if key.key_type == kind and name in (None, key.kid) and key.get("alg") in (None, algorithm) and key.get("use") in (None, "sig")
    ]
    return found[:MOST_TRIED]


def _keys(issuer: Issuer, *, fresh: bool) -> KeySet:
    """Return an issuer's keys. Old keys, or with `fresh` any, are fetched again, but not twice in `MIN_REFETCH`. Raises ClientRefused."""
    with issuer.lock:
        now = time.monotonic()
        if (fresh or now - issuer.fetched_at > MAX_AGE) and now - issuer.tried_at > MIN_REFETCH:
            issuer.tried_at = now
            try:
                issuer.keys = KeySet.import_key_set(_fetch(issuer.url or _discovered(issuer.name or "")))
                issuer.fetched_at = now
            except (OSError, ValueError, TypeError, KeyError, JoseError) as error:
                log.get("metastore.login").error("keys of tokens not fetched", issuer=issuer.name, url=issuer.url, reason=str(error)[:300])
        if issuer.keys is None or now - issuer.fetched_at > MAX_STALE:
            raise ClientRefused("The keys of this server's token issuer can not be fetched; its log has the reason")
        return issuer.keys


def _discovered(issuer: str) -> str:
    """Return the URL of the keys that an issuer's OpenID configuration names. Raises OSError, ValueError, KeyError."""
    found = _fetch(issuer.rstrip("/") + "/.well-known/openid-configuration")
    if found.get("issuer") != issuer:
        raise ValueError(f"the OpenID configuration of {issuer} names the issuer {found.get('issuer')}")
    url = str(found["jwks_uri"])
    if not is_trustworthy(url):
        raise ValueError(f"the OpenID configuration of {issuer} names keys at {url[:200]}, which is not https:")
    return url


def is_trustworthy(url: str) -> bool:
    """Return whether nobody on the way can replace the answer of a URL: TLS, or this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1"))


def _fetch(url: str) -> Any:
    """Return the JSON object at a URL. Raises OSError (URLError is one), ValueError."""
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310  # the scheme was checked when the settings were read
        content = answer.read(MAX_JWKS + 1)
    if len(content) > MAX_JWKS:
        raise ValueError(f"{url} has more than {MAX_JWKS} bytes")
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError(f"{url} is not a JSON object")
    return found
