"""An issuer of JSON web tokens: keys, their JWKS over HTTP on this machine, and valid and invalid tokens."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

AUDIENCE = "metastore"


class Issuer:
    """Serves its keys until `close`; `requests` is the number of requests for them."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.requests = 0
        self.broken = False
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests += 1
                if issuer.broken:
                    self.send_error(503)
                    return
                documents = {
                    "/jwks": KeySet(issuer.keys).as_dict(private=False),
                    "/.well-known/openid-configuration": {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"},
                }
                body = json.dumps(documents[self.path]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add_key(self, kind: str = "EC") -> Any:
        """Make a further key and publish it."""
        parameters = {"kid": f"key-{len(self.keys)}-{time.monotonic_ns()}"}
        key = RSAKey.generate_key(2048, parameters) if kind == "RSA" else ECKey.generate_key("P-256", parameters)
        self.keys.append(key)
        return key

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return valid claims, with changes; None removes a claim."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key: Any, **changes: Any) -> str:
        """Return a token signed by a key."""
        algorithm = "RS256" if key.key_type == "RSA" else "ES256"
        return jwt.encode({"alg": algorithm, "kid": key.kid}, self.claims(**changes), key, algorithms=[algorithm])
