"""Requests to an API server: JSON in, JSON out, every failure a `KubeApiError`.

Connections stay open and are shared by all callers.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import orjson
from yarl import URL

from runtime.backoff import RateLimiter
from runtime.bounded_cache import BoundedCache
from runtime.kubernetes.credentials import ApiCredentials
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError, build_response_error
from schemas.json_types import Json

_RECENT: Final = 100
"""Connections that `close` ends; uvloop's can't be referred to weakly."""


class Connector(aiohttp.TCPConnector):
    """Connector whose `close` leaves no socket open.

    aiohttp forgets a connection that a caller gave up in the middle of an answer, such as a watch's. Its TLS waits up
    to half a minute for the end that the server sends, and a busy server sends it late.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._recent = BoundedCache[asyncio.Transport, None](_RECENT)

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        if connection.transport:
            self._recent.put(connection.transport, None)
        return connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        await super().close(abort_ssl=abort_ssl)
        for transport in self._recent:
            transport.abort()


CountRequest = Callable[[str, str], None]
"""Callback after each request, with its verb as Kubernetes names it (get, list, watch, create, update, patch) and its
result: the HTTP status, or `none` for no answer."""

# As client-go's default page: 5,000 nodes in one answer would hold up the API server and our event loop.
PAGE_LIMIT: Final = 500
MERGE_PATCH: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METHODS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH"}

_REPEATS: Final = 2
"""Limit of the times that a request is repeated because the server asks for it (401, 429)."""
# A filter call waits for this: kube-scheduler gives up on its extender after ``httpTimeout`` (30 s in HAMi's chart).
_MAX_PAUSE_SECONDS: Final = 5.0


def _count_nothing(_verb: str, _result: str) -> None:
    """Count nothing, for callers without metrics."""


class Client:
    """Client that its user closes. `timeout_seconds` limits one request, except watches and logs."""

    def __init__(
        self,
        credentials: ApiCredentials,
        *,
        rate_limiter: RateLimiter | None = None,
        timeout_seconds: float = 10.0,
        count: CountRequest = _count_nothing,
    ) -> None:
        self._credentials, self._count = credentials, count
        self._rate_limiter = rate_limiter or RateLimiter(0, 1)
        self._timeout = timeout_seconds
        # No limit: watches hold their connections for minutes and would use up aiohttp's default of 100.
        connector = Connector(limit=0, keepalive_timeout=75)
        self._session = aiohttp.ClientSession(
            # A cookie of a load balancer must not tie all later requests to one API server.
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "schedulerlog"},
        )

    async def close(self) -> None:
        await self._session.close()
        # aiohttp closes the sockets in the next turn of the event loop; without it Python warns about open ones.
        await asyncio.sleep(0)

    async def get(self, path: str) -> Json:
        """Get one object. Raises `KubeApiError`, as all other methods do."""
        return await self._request_json(_Request("get", "GET", path))

    async def get_metadata(self, path: str) -> Json:
        """Get an object without its spec and status."""
        return await self._request_json(_Request("get", "GET", path, accept=_METADATA))

    async def get_page(self, path: str, **query: str | int) -> Json:
        """Get a list; with `limit`, one page of it."""
        return await self._request_json(_Request("list", "GET", path, tuple(query.items())))

    async def list_objects(self, path: str, **query: str) -> list[Json]:
        """List objects by pages; in one request where the server forgets their version before the last one."""
        items: list[Json] = []
        page_query: dict[str, str | int] = {**query, "limit": PAGE_LIMIT}
        try:
            while True:
                page = await self.get_page(path, **page_query)
                items += page.get("items") or ()
                if not (token := page["metadata"].get("continue")):
                    return items
                page_query["continue"] = token
        except KubeApiError as error:
            if not error.is_expired:
                raise
            return list((await self.get_page(path, **query)).get("items") or ())

    async def create(self, path: str, obj: Mapping[str, Any]) -> Json:
        return await self._write("create", path, obj, _JSON)

    async def update(self, path: str, obj: Mapping[str, Any]) -> Json:
        """Replace an object; raises a conflict if its resourceVersion is not the newest."""
        return await self._write("update", path, obj, _JSON)

    async def patch(self, path: str, change: Mapping[str, Any]) -> Json:
        """Merge a change into an object; raises a conflict if it names a resourceVersion or UID that is not current."""
        return await self._write("patch", path, change, MERGE_PATCH)

    async def delete(self, path: str) -> Json:
        return await self._request_json(_Request("delete", "DELETE", path))

    async def _write(self, verb: str, path: str, body: Mapping[str, Any], content_type: str) -> Json:
        return await self._request_json(_Request(verb, _METHODS[verb], path, (), orjson.dumps(body), content_type))

    async def _request_json(self, request: "_Request") -> Json:
        async with self._answer(request, aiohttp.ClientTimeout(total=self._timeout)) as response:
            with _as_api_error(request, self._timeout):
                body = await response.read()
        try:
            answer: Json = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise KubeApiError(NO_ANSWER, f"{request}: the answer is not JSON: {body[:80]!r}") from None
        return answer

    @asynccontextmanager
    async def watch(
        self, path: str, *, silence_seconds: float, **query: str | int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a watch as they arrive. Raises `KubeApiError` after `silence_seconds` without any."""
        # No total: a watch is meant to last. Silence is what shows a connection whose other end is gone.
        limits = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=silence_seconds)
        request = _Request("watch", "GET", path, (("watch", 1), *query.items()))
        async with self._answer(request, limits) as response:
            yield _iterate_parts(response, request, silence_seconds)

    @asynccontextmanager
    async def log(
        self, path: str, *, silence_seconds: float, **query: str | int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a container's log as they arrive. Raises `KubeApiError` after `silence_seconds` without any."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=silence_seconds)
        request = _Request("get", "GET", path, tuple(query.items()))
        async with self._answer(request, limits) as response:
            yield _iterate_parts(response, request, silence_seconds)

    @asynccontextmanager
    async def _answer(
        self, request: "_Request", limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response of status below 400, whose body is still to be read."""
        response = await self._send(request, limits)
        async with response:
            if response.status >= 400:
                with _as_api_error(request, self._timeout):
                    raise build_response_error(
                        response.status, await response.read(), response.headers.get("Retry-After")
                    )
            yield response

    async def _send(self, request: "_Request", limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send the request and return the server's response. Repeats it with fresh credentials (401), or after a pause
        (429), as the server asks.
        """
        for _ in range(_REPEATS):
            response = await self._send_once(request, limits)
            # Tokens of service accounts are replaced within the hour; ours may have expired since the last reading.
            if response.status == 401:
                await self._credentials.renew()
            # The API server's priority and fairness answers so under load, with whole seconds to wait.
            elif response.status == 429 and (later := response.headers.get("Retry-After", "")).isdigit():
                await asyncio.sleep(min(float(later), _MAX_PAUSE_SECONDS))
            else:
                return response
            # Its connection goes back to the pool.
            response.release()
        return await self._send_once(request, limits)

    async def _send_once(self, request: "_Request", limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if pause := self._rate_limiter.delay_seconds(time.monotonic()):
            await asyncio.sleep(pause)
        credentials = self._credentials
        headers = request.build_headers(await credentials.get_authorization())
        try:
            with _as_api_error(request, self._timeout):
                response = await self._session.request(
                    request.method,
                    # Paths and queries are quoted already; aiohttp would otherwise quote ``%2F`` of a label selector
                    # again.
                    URL(credentials.url + request.target, encoded=True),
                    data=request.body,
                    headers=headers,
                    timeout=limits,
                    # ``tls`` is None for a plain http URL, where aiohttp ignores the value.
                    ssl=credentials.tls or True,
                    # ``tls-server-name`` of a kubeconfig, for API servers that are reached through a tunnel or by
                    # address.
                    server_hostname=credentials.server_name,
                    proxy=credentials.proxy,
                    allow_redirects=False,
                )
        except KubeApiError:
            self._count(request.verb, "none")
            raise
        self._count(request.verb, str(response.status))
        return response


@dataclass(frozen=True, slots=True)
class _Request:
    """One request; its text form is for messages."""

    verb: str
    method: str
    path: str
    query: tuple[tuple[str, str | int], ...] = ()
    body: bytes | None = None
    content_type: str = ""
    accept: str = _JSON

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def build_headers(self, authorization: str) -> dict[str, str]:
        headers = {"Accept": self.accept, "Authorization": authorization, "Content-Type": self.content_type}
        return {name: value for name, value in headers.items() if value}

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class _as_api_error:  # noqa: N801 - a context manager, used as a word
    """Context manager that turns errors of the network into a `KubeApiError` without an answer."""

    def __init__(self, request: _Request, seconds: float) -> None:
        self._request, self._seconds = request, seconds

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, TimeoutError):
            raise KubeApiError(NO_ANSWER, f"{self._request}: no answer within {self._seconds:g} s") from error
        if isinstance(error, aiohttp.ClientConnectorError):
            cause = error.os_error.strerror or error.os_error
            raise KubeApiError(
                NO_ANSWER, f"{self._request}: {error.host}:{error.port} can't be reached ({cause})"
            ) from error
        # The server may have executed the request: only the answer is incomplete.
        if isinstance(error, aiohttp.ClientPayloadError):
            raise KubeApiError(
                NO_ANSWER, f"{self._request}: the connection was lost in the middle of the answer"
            ) from error
        if isinstance(error, (aiohttp.ClientError, OSError)):
            raise KubeApiError(NO_ANSWER, f"{self._request}: {error or type(error).__name__}") from error


async def _iterate_parts(
    response: aiohttp.ClientResponse, request: _Request, silence_seconds: float
) -> AsyncIterator[bytes]:
    with _as_api_error(request, silence_seconds):
        async for part in response.content.iter_any():
            yield part
