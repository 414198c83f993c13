"""The OpenSearch client: the few reads that the API needs, over plain HTTP. The one module here that knows httpx.

Plain HTTP instead of opensearch-py, because documents are large and orjson decodes them several times as fast as the
library does; the API writes nothing, so it needs none of the library's bulk helpers.
"""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final
from urllib.parse import quote

import httpx
import orjson

Json = dict[str, Any]

PING_TIMEOUT_SECONDS: Final = 2.0
# Before the first document is written there is no index behind an alias; the answer is then an empty list, not a 404.
_MISSING_INDEX_IS_EMPTY: Final = {"ignore_unavailable": "true", "allow_no_indices": "true"}
# Without this, OpenSearch answers 200 with the hits of the shards that it could read, which looks like a whole answer.
_ALL_SHARDS: Final = {"allow_partial_search_results": "false"}


class IndexDownError(Exception):
    """OpenSearch can't be reached, or can't answer now. Retry later."""


class IndexRefusedError(Exception):
    """OpenSearch refused the request as wrong: a defect here, or in its templates. Do not retry."""


class PointInTimeGoneError(Exception):
    """The point in time has expired. Start again with the first page."""


RequestObserver = Callable[[str, str, float], None]
"""Called after every request with its kind (``_search``, ``_mget`` …), ``answered`` or ``failed``, and seconds."""


class OpenSearch:
    """Every method raises ``IndexDownError`` or ``IndexRefusedError`` when OpenSearch does not answer as asked."""

    def __init__(self, client: httpx.AsyncClient, observe: RequestObserver) -> None:
        self._client = client
        self._observe = observe

    async def search(self, alias: str, body: Json) -> Json:
        """The answer to a search over all shards.

        A ``body`` with a point in time (``pit``) names its indices itself, and ``alias`` is ignored. Raises
        ``PointInTimeGoneError`` where that has expired.
        """
        if "pit" in body:
            return await self._request("POST", "/_search", body, _ALL_SHARDS)
        return await self._request("POST", f"/{alias}/_search", body, _MISSING_INDEX_IS_EMPTY | _ALL_SHARDS)

    async def documents(self, requested: Sequence[Json]) -> list[Json | None]:
        """``_source`` of each requested document (``_index``, ``_id``, optionally ``_source``); None if missing."""
        if not requested:
            return []
        answer = await self._request("POST", "/_mget", {"docs": list(requested)})
        return [document.get("_source") if document.get("found") else None for document in answer["docs"]]

    async def open_point_in_time(self, alias: str, keep_alive: str) -> str:
        """The id of a new point in time, which expires ``keep_alive`` (``5m``) after its last use."""
        query = _MISSING_INDEX_IS_EMPTY | {"keep_alive": keep_alive}
        answer = await self._request("POST", f"/{alias}/_search/point_in_time", None, query)
        return str(answer["pit_id"])

    async def close_point_in_time(self, pit: str) -> None:
        await self._request("DELETE", "/_search/point_in_time", {"pit_id": [pit]})

    async def ping(self) -> None:
        """Return if OpenSearch answers within two seconds."""
        await self._request("GET", "/", timeout_seconds=PING_TIMEOUT_SECONDS)

    async def _request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: dict[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> Json:
        # "failed" until an answer is decoded, so that a cancelled request is counted too.
        started, outcome = perf_counter(), "failed"
        try:
            response = await self._send(method, path, body, query, timeout_seconds)
            answer = _decoded(response)
            outcome = "answered"
            return answer
        finally:
            self._observe(path.rsplit("/", 1)[-1] or "ping", outcome, perf_counter() - started)

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
            # OpenSearch closed a kept-alive connection, as a restart does. All requests here are reads, so sending
            # one twice is harmless.
            return await self._send_again(request)
        except httpx.HTTPError as error:
            raise IndexDownError(_error_text(error)) from None

    async def _send_again(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._client.send(request)
        except httpx.HTTPError as error:
            raise IndexDownError(_error_text(error)) from None


def _error_text(error: httpx.HTTPError) -> str:
    # Some of httpx's exceptions have no text of their own.
    return f"{type(error).__name__}: {error}".removesuffix(": ")[:300]


def _decoded(response: httpx.Response) -> Json:
    """The JSON of a success. Raises what ``error_of_answer`` makes of anything else."""
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        # A proxy in front of OpenSearch answers HTML while the node behind it is away.
        raise IndexDownError(f"HTTP {response.status_code} without JSON: {response.text[:200]!r}") from None
    if response.is_success and isinstance(answer, dict):
        return answer
    raise error_of_answer(response.status_code, answer)


def error_of_answer(status: int, answer: Any) -> Exception:
    """The exception for an unsuccessful request, by what the caller should do; ``answer`` is the decoded body."""
    cause = _cause(answer)
    # OpenSearch answers 404 for an expired point in time as for a missing index; only the type of the error differs.
    if "search_context_missing_exception" in cause:
        return PointInTimeGoneError(cause)
    # 429: a queue of OpenSearch is full, which passes. 5xx: shards or the whole node are away.
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT) or status >= 500:
        return IndexDownError(f"HTTP {status}: {cause}")
    return IndexRefusedError(f"HTTP {status}: {cause}")


def _cause(answer: Any) -> str:
    """Types and reasons of all errors in an answer of OpenSearch, each once, in one line."""
    error = answer.get("error") if isinstance(answer, dict) else answer
    if not isinstance(error, dict):
        return str(error)[:300]
    causes = [error, *(error.get("root_cause") or []), error.get("caused_by") or {}]
    causes += [shard.get("reason") or {} for shard in error.get("failed_shards") or []]
    texts = [
        f"{cause.get('type', '')}: {cause.get('reason', '')}" for cause in causes if isinstance(cause, dict) and cause
    ]
    return "; ".join(dict.fromkeys(texts))[:1000]
