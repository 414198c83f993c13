"""JSON web tokens (RFC 7519), signed with an RSA key, as an OAuth 2.0 server hands them out."""

import json
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER: Final = "https://issuer.test"
AUDIENCE: Final = "kafka"
TOKEN_SECONDS: Final = 31
"""Life of a token by client credentials. Clients ask for another one 30 s before its end: every second."""
_KEY_ID: Final = "one"


class TokenIssuer:
    """Signs tokens; its key set checks them."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def build_key_set(self) -> dict[str, Any]:
        """Build the public key (RFC 7517)."""
        numbers = self._key.public_key().public_numbers()
        return {
            "keys": [
                {
                    "kty": "RSA",
                    "use": "sig",
                    "alg": "RS256",
                    "kid": _KEY_ID,
                    "n": _encode(numbers.n.to_bytes(256, "big")),
                    "e": _encode(numbers.e.to_bytes(3, "big")),
                }
            ]
        }

    def sign_token(self, subject: str, seconds: float = 3600) -> str:
        """Sign a token that names the user, valid for so long."""
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now - 60, "exp": now + int(seconds)}
        parts = [_write_json({"alg": "RS256", "kid": _KEY_ID}), _write_json(claims)]
        signed = ".".join(parts)
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encode(signature)}"


class OAuthClients:
    """Clients of the token server: all have one secret, which may be replaced while it serves."""

    def __init__(self) -> None:
        self.issuer = TokenIssuer()
        self.secret = "correct-horse"  # noqa: S105 - of clients that live as long as a test


def _write_json(value: dict[str, Any]) -> str:
    return _encode(json.dumps(value).encode())


def _encode(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


@contextmanager
def token_server(clients: OAuthClients) -> Iterator[str]:
    """The URL that gives a token for client credentials (RFC 6749, section 4.4): the client's id is the user."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            credentials = b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            user, _, password = credentials.partition(":")
            request = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            is_right = password == clients.secret and request == {"grant_type": ["client_credentials"]}
            answer = (
                {"access_token": clients.issuer.sign_token(user, TOKEN_SECONDS), "expires_in": TOKEN_SECONDS}
                if is_right
                else {"error": "invalid_client"}
            )
            self.send_response(200 if is_right else 401)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/token"
        finally:
            server.shutdown()
            thread.join()
