"""Requests to an API server: JSON in, JSON out, errors as `ApiError`.

Connections are kept and shared by all callers.
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

from kube.credentials import Credentials
from kube.errors import NO_ANSWER, ApiError, error_of
from kube.rate_limiter import Rate
from kube.resources import Json

Count = Callable[[str, str], None]
"""Told of each request: its verb as Kubernetes names it (get, list, watch, create, update, patch) and its result (the
HTTP status; `none`: no answer)."""

MERGE_PATCH: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
_METHODS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH"}

_TRIES: Final = 2
_LONGEST_PAUSE: Final = 5.0


def _uncounted(_verb: str, _result: str) -> None:
    """For callers without metrics."""


class Client:
    """`timeout_seconds`: what one request may take, watches apart. Close it at the end."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        rate: Rate | None = None,
        timeout_seconds: float = 10.0,
        count: Count = _uncounted,
    ) -> None:
        self._credentials, self._rate, self._count = credentials, rate or Rate(0, 1), count
        self._timeout = timeout_seconds
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=75)
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": "schedulerlog"}
        )

    async def close(self) -> None:
        await self._session.close()
        # The sockets close in the loop's next turn.
        await asyncio.sleep(0)

    async def get(self, path: str) -> Json:
        """Raises `ApiError`, as all the others do."""
        return await self._whole(_Asked("get", "GET", path))

    async def page(self, path: str, **query: str | int) -> Json:
        """A list, or one page of it where `limit` is given."""
        return await self._whole(_Asked("list", "GET", path, tuple(query.items())))

    async def create(self, path: str, found: Mapping[str, Any]) -> Json:
        return await self._write("create", path, found, _JSON)

    async def update(self, path: str, found: Mapping[str, Any]) -> Json:
        """Replace an object; a conflict where its resourceVersion is no longer the newest."""
        return await self._write("update", path, found, _JSON)

    async def patch(self, path: str, change: Mapping[str, Any]) -> Json:
        """Merge into an object; a conflict where the change names a resourceVersion or UID that does not hold."""
        return await self._write("patch", path, change, MERGE_PATCH)

    async def delete(self, path: str) -> Json:
        return await self._whole(_Asked("delete", "DELETE", path))

    async def _write(self, verb: str, path: str, said: Mapping[str, Any], content_type: str) -> Json:
        return await self._whole(_Asked(verb, _METHODS[verb], path, (), orjson.dumps(said), content_type))

    async def _whole(self, asked: "_Asked") -> Json:
        async with self._answer(asked, aiohttp.ClientTimeout(total=self._timeout)) as response:
            with _as_api_error(asked, self._timeout):
                body = await response.read()
        try:
            found: Json = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise ApiError(NO_ANSWER, f"{asked}: the answer is no JSON: {body[:80]!r}") from None
        return found

    @asynccontextmanager
    async def watch(
        self, path: str, *, silence_seconds: float, **query: str | int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a watch as they come. One that is silent for `silence_seconds` ends with an `ApiError`."""
        patience = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=silence_seconds)
        asked = _Asked("watch", "GET", path, (("watch", 1), *query.items()))
        async with self._answer(asked, patience) as response:
            yield _parts(response, asked, silence_seconds)

    @asynccontextmanager
    async def log(
        self, path: str, *, silence_seconds: float, **query: str | int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a container's log as they come. One that is silent for so long ends with an `ApiError`."""
        patience = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=silence_seconds)
        asked = _Asked("get", "GET", path, tuple(query.items()))
        async with self._answer(asked, patience) as response:
            yield _parts(response, asked, silence_seconds)

    @asynccontextmanager
    async def _answer(self, asked: "_Asked", patience: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer's head, of a status below 400."""
        response = await self._send(asked, patience)
        async with response:
            if response.status >= 400:
                with _as_api_error(asked, self._timeout):
                    raise error_of(response.status, await response.read(), response.headers.get("Retry-After"))
            yield response

    async def _send(self, asked: "_Asked", patience: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """The server's answer, after what it asks for: fresh credentials, or to come back later."""
        for _ in range(_TRIES):
            response = await self._once(asked, patience)
            if response.status == 401:
                await self._credentials.renew()
            elif response.status == 429 and (later := response.headers.get("Retry-After", "")).isdigit():
                await asyncio.sleep(min(float(later), _LONGEST_PAUSE))
            else:
                return response
            response.release()
        return await self._once(asked, patience)

    async def _once(self, asked: "_Asked", patience: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if pause := self._rate.wait(time.monotonic()):
            await asyncio.sleep(pause)
        here = self._credentials
        headers = asked.headers(await here.authorization())
        try:
            with _as_api_error(asked, self._timeout):
                response = await self._session.request(
                    asked.method,
                    URL(here.url + asked.target, encoded=True),
                    data=asked.body,
                    headers=headers,
                    timeout=patience,
                    ssl=here.tls or True,
                    server_hostname=here.server_name,
                    proxy=here.proxy,
                    allow_redirects=False,
                )
        except ApiError:
            self._count(asked.verb, "none")
            raise
        self._count(asked.verb, str(response.status))
        return response


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request."""

    verb: str
    method: str
    path: str
    query: tuple[tuple[str, str | int], ...] = ()
    body: bytes | None = None
    content_type: str = ""

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def headers(self, authorization: str) -> dict[str, str]:
        said = {"Accept": _JSON, "Authorization": authorization, "Content-Type": self.content_type}
        return {name: value for name, value in said.items() if value}

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class _as_api_error:  # noqa: N801 - a context manager, used as a word
    """Whatever the network raises is a request without an answer."""

    def __init__(self, asked: _Asked, seconds: float) -> None:
        self._about, self._seconds = asked, seconds

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, TimeoutError):
            raise ApiError(NO_ANSWER, f"{self._about}: no answer within {self._seconds:g} s") from error
        if isinstance(error, aiohttp.ClientConnectorError):
            cause = error.os_error.strerror or error.os_error
            raise ApiError(NO_ANSWER, f"{self._about}: {error.host}:{error.port} can't be reached ({cause})") from error
        if isinstance(error, aiohttp.ClientPayloadError):
            raise ApiError(NO_ANSWER, f"{self._about}: the connection was lost in the middle of the answer") from error
        if isinstance(error, (aiohttp.ClientError, OSError)):
            raise ApiError(NO_ANSWER, f"{self._about}: {error or type(error).__name__}") from error


async def _parts(response: aiohttp.ClientResponse, asked: _Asked, silence_seconds: float) -> AsyncIterator[bytes]:
    with _as_api_error(asked, silence_seconds):
        async for part in response.content.iter_any():
            yield part
