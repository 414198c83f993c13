"""The index. Calls ``_bulk`` itself: the client's helper never retries a refused item and costs 2.8 times the CPU."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnectionError
from opensearchpy.exceptions import TransportError

from pipeline.sinks.backoff import Backoff
from pipeline.sinks.bulk import Document, batches, body
from pipeline.sinks.bulk_result import BulkOutcome, BulkResult, of_bulk, of_status
from pipeline.sinks.metrics import IndexMetrics
from pipeline.sinks.msearch import Hits, Search
from schemas.indices import INDICES, MAPPING_VERSION

TIMEOUT_SECONDS: Final = 30
_AT_A_TIME: Final = 2
"""Bulk requests: while the index works on one, the next is on its way."""
_QUESTIONS: Final = 200
"""In one request."""
_FILTER: Final = "errors,items.*.status,items.*.error.type,items.*.error.reason"
_PROVISION: Final = "run `python -m pipeline provision`"


class NotProvisionedError(Exception):
    """The index has no template of ours, or one of another version: stop, and say how to make it."""


@dataclass(slots=True)
class WriteResult:
    """What became of documents that were not simply written."""

    conflicts: list[Document] = field(default_factory=list)
    """A telling that is as new or newer is there already."""
    refused: list[tuple[Document, str]] = field(default_factory=list)
    """The store will never take them; why."""


def client(url: str) -> AsyncOpenSearch:
    """A client that tries once; when and whether to try again is decided here."""
    # It would log every failed try with a stack trace; Backoff says it once.
    logging.getLogger("opensearch").setLevel(logging.CRITICAL)
    return AsyncOpenSearch(hosts=[url], timeout=TIMEOUT_SECONDS, max_retries=0, retry_on_timeout=False, maxsize=4)


class OpenSearchSink:
    """Writes until it is written. ``batch_documents`` and ``batch_bytes`` bound one request."""

    def __init__(
        self,
        store: AsyncOpenSearch,
        metrics: IndexMetrics,
        *,
        batch_documents: int = 1_000,
        batch_bytes: int = 8 * 1024 * 1024,
        max_backoff_seconds: float = 10.0,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._most = batch_documents
        self._most_bytes = batch_bytes
        self._backoff = Backoff("OpenSearch", max_backoff_seconds)
        self._checked: set[str] = set()
        self._refreshed: set[str] = set()

    @property
    def is_waiting(self) -> bool:
        """Is the store being waited for?"""
        return self._backoff.is_waiting

    async def close(self) -> None:
        await self._store.close()

    async def check(self) -> None:
        """Return when the store answers and has our templates. Raises ``NotProvisionedError``."""
        for index in INDICES:
            await self._check_template(index.alias)

    async def write(self, documents: Sequence[Document]) -> WriteResult:
        """Return when every document is written, there already, or refused for good."""
        written = WriteResult()
        for index in sorted({each.index for each in documents} - self._checked):
            await self._check_index(index)
        todo = deque(batches(documents, self._most, self._most_bytes))
        async with asyncio.TaskGroup() as under_way:
            for _ in range(min(_AT_A_TIME, len(todo))):
                under_way.create_task(self._write_all(todo, written))
        return written

    async def _write_all(self, todo: deque[list[Document]], written: WriteResult) -> None:
        """Until nothing is left to do. In whose order does not matter: versions say which telling stays."""
        while todo:
            batch = todo.popleft()
            answers = await self._bulk(batch)
            todo.extendleft(reversed(_again(batch, answers)))
            _sort(batch, answers, written)

    async def fetch(self, index: str, document_id: str) -> dict[str, Any] | None:
        """The document as it is at this moment, not as the last refresh showed it; None where there is none."""
        path = f"/{index}/_doc/{document_id}"
        return await self._request("GET", path, absent=(404,), params={"_source_includes": "summary,repeated"})

    async def search(self, questions: Sequence[Search]) -> list[Hits]:
        """The hits of each question (header and body of ``_msearch``).

        What earlier owners of the partitions wrote is seen; what this one wrote is only after a refresh.
        """
        for index in sorted({name for header, _ in questions for name in header["index"]} - self._refreshed):
            await self._request("POST", f"/{index}/_refresh", absent=(404,))
            self._refreshed.add(index)
        found: list[list[dict[str, Any]]] = []
        for start in range(0, len(questions), _QUESTIONS):
            lines = [json_line for pair in questions[start : start + _QUESTIONS] for json_line in pair]
            found += await self._search(b"\n".join([*map(orjson.dumps, lines), b""]))
        return found

    async def _search(self, body: bytes) -> list[list[dict[str, Any]]]:
        while True:
            said = await self._request("POST", "/_msearch", absent=(), body=body)
            answers = (said or {}).get("responses", [])
            failed = next((each for each in answers if "hits" not in each), None)
            if failed is None:
                return [each["hits"]["hits"] for each in answers]
            await self._backoff.failed(f"POST /_msearch: {str(failed.get('error'))[:300]}")

    def forget(self) -> None:
        """Others may write what this one wrote alone until now."""
        self._refreshed.clear()

    async def _bulk(self, batch: Sequence[Document]) -> list[BulkResult]:
        with self._metrics.bulk_seconds.time():
            answer, said = await self._try("POST", "/_bulk", body=body(batch), params={"filter_path": _FILTER})
        answers = of_bulk(said, len(batch)) if answer.outcome is BulkOutcome.DONE else [answer] * len(batch)
        for outcome, count in Counter(each.outcome for each in answers).items():
            self._metrics.documents(outcome.value).inc(count)
        retried = next((each for each in answers if each.outcome is BulkOutcome.RETRY), None)
        if retried:
            self._metrics.retries.inc()
            await self._backoff.failed(retried.cause)
        else:
            self._backoff.worked()
        return answers

    async def _check_index(self, name: str) -> None:
        """Make the index unless it is there: what OpenSearch makes by itself may have no mapping of ours."""
        mapping = await self._request("GET", f"/{name}/_mapping", absent=(404,))
        if mapping is None:
            await self._check_template(name.rpartition("-")[0])
            await self._request("PUT", f"/{name}", absent=(400,))  # another worker was first
            mapping = await self._request("GET", f"/{name}/_mapping", absent=(404,))
        for each in (mapping or {}).values():
            _check_version(f"index {name}", each.get("mappings", {}))
        self._checked.add(name)

    async def _check_template(self, name: str) -> None:
        found = await self._request("GET", f"/_index_template/{name}", absent=(404,))
        if not found or not found.get("index_templates"):
            raise NotProvisionedError(f"OpenSearch has no index template {name}: {_PROVISION}")
        _check_version(f"index template {name}", found["index_templates"][0].get("index_template", {}))

    async def _request(self, method: str, path: str, *, absent: tuple[int, ...], **how: Any) -> dict[str, Any] | None:
        """The answer; None for a status in ``absent``. Tries until there is one."""
        while True:
            answer, said = await self._try(method, path, **how)
            if answer.outcome is BulkOutcome.DONE:
                self._backoff.worked()
                return said if isinstance(said, dict) else {}
            if said in absent:
                self._backoff.worked()
                return None
            await self._backoff.failed(f"{method} {path}: {answer.cause}")

    async def _try(self, method: str, path: str, **how: Any) -> tuple[BulkResult, Any]:
        """One try: what its status means, and the answer's JSON or, of a failure, the status."""
        try:
            return BulkResult(BulkOutcome.DONE), await self._store.transport.perform_request(method, path, **how)
        except NoConnectionError as error:  # time-outs too; their "status" is a word
            return BulkResult(BulkOutcome.RETRY, f"no answer: {error.error}"), None
        except TransportError as error:
            status = error.status_code
            return of_status(status, str(error)) if isinstance(status, int) else BulkResult(
                BulkOutcome.RETRY, str(error)
            ), status
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - an answer that is no JSON ends in the parser's own errors
            return BulkResult(BulkOutcome.RETRY, f"{type(error).__name__}: {error}"), None


def _again(batch: list[Document], answers: list[BulkResult]) -> list[list[Document]]:
    """What is to be sent again: what failed, in one request; what was too long together, in two."""
    if len(batch) > 1 and _as_a_whole(answers):
        half = len(batch) // 2
        return [batch[:half], batch[half:]]
    retry = [each for each, answer in zip(batch, answers, strict=True) if answer.outcome is BulkOutcome.RETRY]
    return [retry] if retry else []


def _as_a_whole(answers: list[BulkResult]) -> bool:
    """Was the request refused as such? Then halves of it tell which document it was."""
    return all(each is answers[0] for each in answers) and answers[0].outcome in (
        BulkOutcome.SPLIT,
        BulkOutcome.REFUSED,
    )


def _sort(batch: list[Document], answers: list[BulkResult], written: WriteResult) -> None:
    if len(batch) > 1 and _as_a_whole(answers):
        return
    for document, answer in zip(batch, answers, strict=True):
        if answer.outcome is BulkOutcome.CONFLICT:
            written.conflicts.append(document)
        elif answer.outcome in (BulkOutcome.SPLIT, BulkOutcome.REFUSED):
            written.refused.append((document, answer.cause))


def _check_version(what: str, said: dict[str, Any]) -> None:
    version = said.get("_meta", {}).get("schedulerlog_mapping_version")
    if isinstance(version, int) and version > MAPPING_VERSION:
        raise NotProvisionedError(
            f"{what} has mapping version {version}, newer than {MAPPING_VERSION} of this worker: start the newer "
            f"one or, to go back, {_PROVISION} of this version"
        )
    if version != MAPPING_VERSION:
        raise NotProvisionedError(f"{what} has mapping version {version}, not {MAPPING_VERSION}: {_PROVISION}")
