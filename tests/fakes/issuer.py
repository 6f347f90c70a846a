"""An issuer of tokens: signs them with keys of its own and serves the public halves as a key set."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from typing_extensions import override

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class FakeIssuer:
    """An issuer with `keys` by their ids; the key set shows the `published` ones; `status` is its answers' status."""

    def __init__(self) -> None:
        self.keys: dict[str, PrivateKey] = {}
        self.published: list[dict[str, Any]] = []
        self.status = 200
        self.body: bytes | None = None
        self.fetches = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.fetches += 1
                body = issuer.body if issuer.body is not None else json.dumps({"keys": issuer.published}).encode()
                self.send_response(issuer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            @override
            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/jwks.json"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def add(self, kid: str, *, curve: bool = False, **said: Any) -> None:
        """Make a key and publish it; `said` adds or replaces fields of its published half."""
        self.keys[kid] = (
            ec.generate_private_key(ec.SECP256R1())
            if curve
            else rsa.generate_private_key(public_exponent=65537, key_size=2048)
        )
        self.published.append({**self.public(kid), "kid": kid, **said})

    def public(self, kid: str) -> dict[str, Any]:
        """Return the public half as a key set has it."""
        key = self.keys[kid]
        if isinstance(key, rsa.RSAPrivateKey):
            return dict(RSAAlgorithm.to_jwk(key.public_key(), as_dict=True))
        return dict(ECAlgorithm.to_jwk(key.public_key(), as_dict=True))

    def signed(self, kid: str, claims: dict[str, Any], *, shown: str | None = None, algorithm: str = "RS256") -> str:
        """Return a token signed with a key; `shown` is the key's id in its header, "" for none."""
        name = kid if shown is None else shown
        return jwt.encode(claims, self.keys[kid], algorithm, headers={"kid": name} if name else None)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
