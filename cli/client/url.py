"""The API over HTTP, by a URL; nothing but the standard library, because a command has to start at once."""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from cli.client.problems import NotAllowed, NotFound, Problem, Unreachable, to_problem
from cli.client.requests import ROOT, with_query
from cli.client.transport import NO_QUERY, TIMEOUT_SECONDS, Query, WatchedChange, parse_changes, read_json
from cli.client.wording import to_terminal_words
from schemas.json_types import Json

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MAX_ERROR_BYTES = 100_000
_HOW_TO_LOG_IN = "Give a token with --api-token-file: `kubectl create token NAME --audience schedulerlog` makes one."
_HOW_TO_LOG_IN_AGAIN = (
    "The token is not valid, or no longer: `kubectl create token NAME --audience schedulerlog` makes another."
)


@dataclass(frozen=True, slots=True)
class UrlTransport:
    url: str
    """No slash at its end; it may have a path."""
    token: str = ""
    """Sent as a bearer token, only over HTTPS or to this machine."""
    ca_file: str = ""
    """Certificates that are trusted in place of the system's."""
    default_namespace: str = "default"

    def get(self, path: str, query: Query = NO_QUERY) -> Json | Problem:
        return self._parse_json(self.get_text(path, query))

    def get_text(self, path: str, query: Query = NO_QUERY) -> bytes | Problem:
        return self._fetch("GET", with_query(ROOT + path, query))

    def post(self, path: str, body: bytes, query: Query = NO_QUERY) -> Json | Problem:
        return self._parse_json(self._fetch("POST", with_query(ROOT + path, query), body))

    def stream(self, path: str, query: Query = NO_QUERY) -> Iterator[WatchedChange | Problem]:
        try:
            # Without a limit: an unchanged pod has no events, and the API keeps the connection open by bookmarks.
            with closing(self._create_connection(None)) as connection:
                response = self._send(connection, "GET", with_query(ROOT + path, query), None, "application/json")
                if response.status != HTTPStatus.OK:
                    yield self._to_problem(response)
                    return
                yield from parse_changes(response)
        except (OSError, http.client.HTTPException, ValueError) as error:
            yield self._describe_failure(error)

    def get_namespace(self) -> str:
        return self.default_namespace

    def _fetch(self, method: str, target: str, body: bytes | None = None) -> bytes | Problem:
        try:
            with closing(self._create_connection(TIMEOUT_SECONDS)) as connection:
                response = self._send(connection, method, target, body, "application/json, application/yaml")
                if response.status != HTTPStatus.OK:
                    return self._to_problem(response)
                return response.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            return self._describe_failure(error)

    def _parse_json(self, body: bytes | Problem) -> Json | Problem:
        return body if isinstance(body, Problem) else read_json(body, self.url)

    def _create_connection(self, timeout: float | None) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "https":
            context = self._create_context()
            return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=context)
        if self.token and host not in _LOOPBACK:
            raise ValueError("a token is sent only over https, and this address is http")
        return http.client.HTTPConnection(host, parts.port, timeout=timeout)

    def _create_context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:
            # OpenSSL names neither the file nor what it lacks.
            why = "holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise ValueError(f"the authority of its certificate, {self.ca_file}: {why}") from None

    def _send(
        self, connection: http.client.HTTPConnection, method: str, target: str, body: bytes | None, accept: str
    ) -> http.client.HTTPResponse:
        headers = {"Accept": accept}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            # JSON is YAML.
            headers["Content-Type"] = "application/yaml"
        connection.request(method, urlsplit(self.url).path + target, body, headers)
        return connection.getresponse()

    def _to_problem(self, response: http.client.HTTPResponse) -> Problem:
        body = response.read(_MAX_ERROR_BYTES)
        try:
            error = json.loads(body)
            cause, next_step = (to_terminal_words(str(error[part])) for part in ("error", "next"))
            code = error.get("code")
        except (ValueError, KeyError, TypeError, AttributeError):
            cause = f"{self.url} answers {response.status} {response.reason}"
            # A page of another server says nothing about the pod.
            return _to_foreign_problem(response.status, cause)
        if code == "UnknownPath":
            return Unreachable(cause, "The API is older than this command, or the address is not an API's.")
        if response.status == HTTPStatus.UNAUTHORIZED:
            # The API speaks of a header.
            next_step = _HOW_TO_LOG_IN_AGAIN if self.token else _HOW_TO_LOG_IN
        return to_problem(response.status, cause, next_step)

    def _describe_failure(self, error: Exception) -> Problem:
        cause = str(getattr(error, "strerror", "") or error or type(error).__name__)
        next_step = f"Does the API run there? `curl {self.url}/healthz` answers when it does."
        match error:
            case ssl.SSLCertVerificationError():
                cause = f"its certificate is not trusted ({error.verify_message})"
                next_step = "Name its authority with --api-ca-file."
            case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST"):
                cause, next_step = "what answers there does not speak TLS", "Is its address one with http://?"
            case ssl.SSLError(reason=str(reason)):
                cause = f"TLS failed: {reason.lower().replace('_', ' ')}"
                next_step = "Does it take other versions of TLS, or want a client's certificate? Ask through its proxy."
            case http.client.RemoteDisconnected() if self.url.startswith("http://"):
                cause, next_step = "it closed the connection without an answer", "Is its address one with https://?"
            case TimeoutError(errno=None):
                cause = f"no answer within {TIMEOUT_SECONDS} s"
            case ValueError():
                next_step = ""
        return Unreachable(f"{self.url}: {cause}", next_step)


def _to_foreign_problem(status: int, cause: str) -> Problem:
    problem = to_problem(status, cause)
    if isinstance(problem, NotFound):
        return Unreachable(cause, "Is it the address of schedulerlog's API?")
    if isinstance(problem, NotAllowed):
        return NotAllowed(cause, _HOW_TO_LOG_IN)
    return problem
