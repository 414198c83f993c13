"""The one module that speaks to OpenSearch: a few reads over HTTP.

Plain HTTP instead of the client library, because documents are large and orjson reads them several times as fast as the
library does; there is nothing to write, so nothing of its bulk helpers is missed.
"""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final
from urllib.parse import quote

import httpx
import orjson

Json = dict[str, Any]

ATTEMPTS: Final = "schedulerlog-attempts"
_QUIET: Final = {"ignore_unavailable": "true", "allow_no_indices": "true"}
"""Before the first attempt there is no index behind the alias, and so nothing found."""


class IndexDownError(Exception):
    """OpenSearch can't be reached or can't answer now. Retry later."""


class IndexRefusedError(Exception):
    """OpenSearch answered that the request is wrong: a defect of ours, or of its templates. Retrying will not help."""


class PointInTimeGoneError(Exception):
    """The point in time has expired. Begin again from the first page."""


Observe = Callable[[str, str, float], None]
"""Told about every request: what for, how it went, seconds."""


class OpenSearch:
    def __init__(self, client: httpx.AsyncClient, observe: Observe) -> None:
        self._client = client
        self._observe = observe

    async def search(self, alias: str, body: Json) -> Json:
        """The answer to a search. All shards must have answered: half of the truth would look like all of it."""
        if "pit" in body:
            return await self._ask("POST", "/_search", body, {"allow_partial_search_results": "false"})
        query = _QUIET | {"allow_partial_search_results": "false"}
        return await self._ask("POST", f"/{alias}/_search", body, query)

    async def documents(self, wanted: Sequence[Json]) -> list[Json | None]:
        """``_source`` of each of ``wanted`` (``_index``, ``_id``, perhaps ``_source``); None where it is gone."""
        if not wanted:
            return []
        answer = await self._ask("POST", "/_mget", {"docs": list(wanted)})
        return [each.get("_source") if each.get("found") else None for each in answer["docs"]]

    async def open_point_in_time(self, alias: str, keep_alive: str) -> str:
        query = _QUIET | {"keep_alive": keep_alive}
        answer = await self._ask("POST", f"/{alias}/_search/point_in_time", None, query)
        return str(answer["pit_id"])

    async def close_point_in_time(self, pit: str) -> None:
        await self._ask("DELETE", "/_search/point_in_time", {"pit_id": [pit]})

    async def ping(self) -> None:
        """Raises ``IndexDownError`` unless OpenSearch answers."""
        await self._ask("GET", "/", timeout_seconds=2.0)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: dict[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> Json:
        began, outcome = perf_counter(), "failed"
        try:
            response = await self._send(method, path, body, query, timeout_seconds)
            answer = _read(response)
            outcome = "answered"
            return answer
        finally:
            self._observe(path.rsplit("/", 1)[-1] or "ping", outcome, perf_counter() - began)

    async def _send(
        self, method: str, path: str, body: Json | None, query: dict[str, str] | None, timeout_seconds: float | None
    ) -> httpx.Response:
        content = orjson.dumps(body) if body is not None else None
        request = self._client.build_request(
            method,
            quote(path, safe="/"),
            params=query,
            content=content,
            headers={"content-type": "application/json"},
            timeout=timeout_seconds or self._client.timeout,
        )
        try:
            return await self._client.send(request)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            # A kept connection that the server closed meanwhile, as after its restart. Reads may be sent twice.
            return await self._send_again(request)
        except httpx.HTTPError as error:
            raise IndexDownError(_words(error)) from None

    async def _send_again(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._client.send(request)
        except httpx.HTTPError as error:
            raise IndexDownError(_words(error)) from None


def _words(error: httpx.HTTPError) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")[:300]


def _read(response: httpx.Response) -> Json:
    """Raises what the status means."""
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        raise IndexDownError(f"HTTP {response.status_code} without JSON: {response.text[:200]!r}") from None
    if response.is_success and isinstance(answer, dict):
        return answer
    raise refusal(response.status_code, answer)


def refusal(status: int, answer: Any) -> Exception:
    """What an answer that is no success means for the one who asked."""
    said = _cause(answer)
    if "search_context_missing_exception" in said:
        return PointInTimeGoneError(said)
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT) or status >= 500:
        return IndexDownError(f"HTTP {status}: {said}")
    return IndexRefusedError(f"HTTP {status}: {said}")


def _cause(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else answer
    if not isinstance(error, dict):
        return str(error)[:300]
    causes = [error, *(error.get("root_cause") or []), error.get("caused_by") or {}]
    causes += [each.get("reason") or {} for each in error.get("failed_shards") or []]
    said = [f"{each.get('type', '')}: {each.get('reason', '')}" for each in causes if isinstance(each, dict) and each]
    return "; ".join(dict.fromkeys(said))[:1000]
