"""The reads of OpenSearch that the API needs, and the meaning of its errors for a caller."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final
from urllib.parse import quote

import orjson
from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnectionError
from opensearchpy.exceptions import ConnectionTimeout, SerializationError, TransportError

from api.http.caller_wait import CallerWait, get_current_wait
from api.http.request_spans import opensearch_span
from api.index.reading.circuit import TIMEOUTS, Circuit, CircuitOpenError
from api.index.reading.coalescing import Coalescing
from api.index.reading.turns import Turns
from runtime.opensearch.refusals import suggest_next_step
from runtime.opensearch.roles import READER
from runtime.settings.addresses import without_addresses
from schemas.events import NodeStateChanged
from schemas.json_types import Json

_NEEDED: Final = f"the role {READER}"
_NO_INDEX: Final = "index_not_found_exception"
_NOT_ALLOWED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

PING_TIMEOUT_SECONDS: Final = 2.0
_AT_A_TIME: Final = 16
"""Maximum number of simultaneous requests to OpenSearch; further ones wait and are combined (``coalescing``)."""
# Before the first document there is no index behind an alias; the answer is then an empty list, not a 404.
_MISSING_INDEX_IS_EMPTY: Final = {"ignore_unavailable": "true", "allow_no_indices": "true"}
# Without this, OpenSearch answers 200 with the hits of the readable shards, which looks like a complete answer.
_ALL_SHARDS: Final = {"allow_partial_search_results": "false"}
_SEARCH: Final = _MISSING_INDEX_IS_EMPTY | _ALL_SHARDS
BACK_SECONDS: Final = 0.2
"""Wait of a caller after a probe that hung: an OpenSearch that is back answers within that time."""


class IndexDownError(Exception):
    """Failure to reach OpenSearch, or to get an answer now. Retry later."""


class IndexTimeoutError(IndexDownError, TimeoutError):
    """Time-out of a request to OpenSearch."""


class IndexRefusedError(Exception):
    """Refusal of a request by OpenSearch: a defect here, or in its templates. Do not retry."""


RequestObserver = Callable[[str, str, float], None]
"""Observes every request: its kind (``_search``, ``_mget`` …), ``answered`` or ``failed``, and seconds."""


StatesById = Callable[[Iterable[str]], dict[str, NodeStateChanged]]


def _find_no_states(_: Iterable[str]) -> dict[str, NodeStateChanged]:
    return {}


class OpenSearch:
    """Reader of OpenSearch. Every method raises ``IndexDownError`` or ``IndexRefusedError`` without a valid answer.

    ``timeout_seconds``: limit of all reads for one caller (``api.http.caller_wait``), or of each without a caller.
    ``states_in_memory``: finds states by their ids in memory.
    """

    def __init__(
        self,
        client: AsyncOpenSearch,
        observe: RequestObserver,
        timeout_seconds: float,
        states_in_memory: StatesById = _find_no_states,
    ) -> None:
        self.states_in_memory = states_in_memory
        self._client = client
        self._observe = observe
        self._timeout_seconds = timeout_seconds
        self._circuit = Circuit()
        self._turns = Turns(_AT_A_TIME)
        self._coalescing = Coalescing()
        self.refused = 0
        """Number of requests not sent because the last ones timed out."""

    async def search(self, alias: str, body: Json) -> Json:
        """Search all shards. Callers with the same search share the answer, so nobody changes it."""
        path = f"/{alias}/_search"
        return await self._request((path, orjson.dumps(body)), "", path, lambda _: body, _SEARCH)

    async def search_for(self, alias: str, item: str, group: Hashable, body: Callable[[Sequence[str]], Json]) -> Json:
        """Search by one ``body`` for this item and for all items of its group that others request while it waits."""
        return await self._request((alias, group), item, f"/{alias}/_search", body, _SEARCH)

    async def read_documents(self, requested: Sequence[Json]) -> list[Json | None]:
        """Read ``_source`` of each requested document (``_index``, ``_id``, maybe ``_source``); None if missing."""
        if not requested:
            return []
        body = {"docs": list(requested)}
        answer = await self._request(("/_mget", orjson.dumps(body)), "", "/_mget", lambda _: body)
        for document in answer["docs"]:
            # `_mget` answers 200 although a shard is away, which must not look like a missing document.
            if "error" in document and (cause := _describe_causes(document)) and _NO_INDEX not in cause:
                raise IndexDownError(f"_mget: {cause}")
        return [document.get("_source") if document.get("found") else None for document in answer["docs"]]

    async def ping(self) -> None:
        """Return if OpenSearch answers within two seconds, even with an open circuit."""
        with _bounded(PING_TIMEOUT_SECONDS), self._observed("/"):
            async with asyncio.timeout(PING_TIMEOUT_SECONDS):
                await self._send("GET", "/", None, None)

    async def _request(
        self,
        key: Hashable,
        item: str,
        path: str,
        body: Callable[[Sequence[str]], Json],
        query: dict[str, str] | None = None,
    ) -> Json:
        wait = get_current_wait() or CallerWait(self._timeout_seconds)
        if (seconds := wait.count_remaining_seconds()) <= 0:
            raise IndexDownError(f"its answers took more than {self._timeout_seconds:g} s together")

        async def send(close_request: Callable[[], list[str]]) -> Json:
            # The observation covers the wait for a turn and for a connection, the answer, and the second try.
            with self._observed(path):
                async with self._turns.turn(wait.derive_end()):
                    return await self._send("POST", path, body(close_request()), query)

        try:
            with self._circuit.request(), _bounded(seconds):
                async with asyncio.timeout(seconds):
                    return await self._coalescing.answer(key, item, send)
        except CircuitOpenError:
            self.refused += 1
            raise IndexDownError(
                f"the last {TIMEOUTS} requests were not answered in time; it is asked again once a second"
            ) from None

    @contextmanager
    def _observed(self, path: str) -> Iterator[None]:
        # "failed" until an answer is decoded, so that a cancelled request counts too.
        started, outcome = perf_counter(), "failed"
        try:
            with opensearch_span(path):
                yield
            outcome = "answered"
        finally:
            self._observe(path.rsplit("/", 1)[-1] or "ping", outcome, perf_counter() - started)

    async def _send(self, method: str, path: str, body: Json | None, query: dict[str, str] | None) -> Json:
        request = method, quote(path, safe="/"), query, body
        try:
            return await self._ask(*request)
        except ConnectionTimeout:
            raise TimeoutError from None
        except NoConnectionError:
            # OpenSearch closed a kept-alive connection, as a restart does, or one of several nodes is away. All
            # requests here are reads, so to send one twice is harmless.
            try:
                return await self._ask(*request)
            except NoConnectionError as error:
                raise IndexDownError(_describe_error(error)) from None

    async def _ask(self, method: str, path: str, query: dict[str, str] | None, body: Json | None) -> Json:
        try:
            answer = await self._client.transport.perform_request(method, path, query, body)
        except NoConnectionError:
            raise
        except SerializationError as error:
            # A proxy in front of OpenSearch answers HTML while the node behind it is away.
            raise IndexDownError(f"an answer without JSON: {str(error)[:200]!r}") from None
        except TransportError as error:
            raise _to_error(error) from None
        if isinstance(answer, dict):
            return answer
        raise IndexDownError(f"an answer without an object in JSON: {str(answer)[:200]!r}")


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Raise ``IndexTimeoutError`` if the block inside times out after ``seconds``."""
    try:
        yield
    except TimeoutError:
        raise IndexTimeoutError(f"no answer within {seconds:.2g} s") from None


def _describe_error(error: TransportError) -> str:
    # ``info`` has the error of the library's HTTP client; some of these have no text.
    text = without_addresses(f"{type(error.info).__name__}: {error.error}".removesuffix(": "))[:300]
    return text + suggest_next_step(error, _NEEDED)


def _to_error(error: TransportError) -> Exception:
    if error.status_code in _NOT_ALLOWED:
        # The security plugin answers some of these without JSON.
        cause = _describe_causes(error.info or error.error)
        words = f"HTTP {error.status_code}: {cause}{suggest_next_step(error, _NEEDED)}"
        # A password that is being replaced is refused until our file has it too.
        return IndexDownError(words) if error.status_code == HTTPStatus.UNAUTHORIZED else IndexRefusedError(words)
    if isinstance(error.info, dict):
        return to_index_error(error.status_code, error.info)
    else:
        return IndexDownError(f"HTTP {error.status_code} without JSON: {str(error.error)[:200]!r}")


def to_index_error(status: int, answer: Any) -> Exception:
    """Build the exception for an unsuccessful request, by what the caller should do; ``answer`` is the decoded body."""
    cause = _describe_causes(answer)
    # 401: a password is being replaced. 429: a queue of OpenSearch is full, which passes. 5xx: shards or the whole node
    # are away.
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT) or status >= 500:
        return IndexDownError(f"HTTP {status}: {cause}")
    return IndexRefusedError(f"HTTP {status}: {cause}")


def _describe_causes(answer: Any) -> str:
    """List the types and reasons of all errors in an answer of OpenSearch, each once, in one line."""
    error = answer.get("error") if isinstance(answer, dict) else answer
    if not isinstance(error, dict):
        return str(error)[:300]
    causes = [error, *(error.get("root_cause") or []), error.get("caused_by") or {}]
    causes += [shard.get("reason") or {} for shard in error.get("failed_shards") or []]
    texts = [
        f"{cause.get('type', '')}: {cause.get('reason', '')}" for cause in causes if isinstance(cause, dict) and cause
    ]
    return "; ".join(dict.fromkeys(texts))[:1000]


class IndexProbe:
    def __init__(self, index: OpenSearch) -> None:
        self._index = index
        self._probing: asyncio.Task[None] | None = None
        self._problem = ""
        self._hangs = False

    async def find_problem(self) -> str:
        """Find why OpenSearch does not answer; empty if it does.

        Takes two seconds while OpenSearch hangs, and ``BACK_SECONDS`` from then on: the answer is that of the last
        probe, unless the current one ends before.
        """
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe())
        # A caller who leaves does not take the probe from the others: ``wait`` cancels nothing.
        ended, _ = await asyncio.wait({self._probing}, timeout=BACK_SECONDS if self._hangs else None)
        for probe in ended:
            probe.result()
        return self._problem

    async def _probe(self) -> None:
        try:
            await self._index.ping()
        except (IndexDownError, IndexRefusedError) as error:
            self._problem, self._hangs = str(error), isinstance(error, IndexTimeoutError)
        else:
            self._problem, self._hangs = "", False
