"""The index: writes documents until they are written, and answers searches.

It calls ``_bulk`` itself. The client's own helper (``async_streaming_bulk``) retries items only for status 429,
and not even those unless ``raise_on_error`` is off, and costs 2.8 times the CPU."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson
from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnectionError
from opensearchpy.exceptions import TransportError

from pipeline.metrics import IndexMetrics
from pipeline.sinks.bulk import (
    BulkOutcome,
    BulkResult,
    Document,
    WriteResult,
    encode_body,
    judge_bulk,
    judge_status,
    list_retries,
    note,
    split_batches,
)
from pipeline.sinks.msearch import Hits, Search
from runtime.backoff import Backoff
from runtime.errors import NotProvisionedError
from runtime.kafka.broker_clock import trust_own_clock
from runtime.opensearch.refusals import explain_refusal
from runtime.opensearch.roles import WRITER
from schemas.index_family import IMPOSSIBLE_DAY, MAPPING_VERSION, Index, is_possible
from schemas.indices import INDICES, OF_DAYS

_PARALLEL_REQUESTS: Final = 2
"""Number of bulk requests at a time: while the index works on one, the next is on its way."""
_SEARCHES_A_REQUEST: Final = 200
# The rest of an answer repeats what was sent; for a thousand documents it is most of the bytes.
_FILTER: Final = "errors,items.*.status,items.*.error.type,items.*.error.reason"
_NEEDED: Final = f"the role {WRITER}"
_EXISTS: Final = "resource_already_exists_exception"
"""Error type if another process was faster."""
_PROVISION: Final = "run `schedulerlog pipeline provision`"


class OpenSearchSink:
    """Writer of documents, until each is written, in conflict, or refused, and searcher.

    ``batch_documents`` and ``batch_bytes`` bound one request. ``wait_for_right_time`` returns while ``clock`` is right.
    """

    def __init__(
        self,
        store: AsyncOpenSearch,
        metrics: IndexMetrics,
        *,
        batch_documents: int = 1_000,
        batch_bytes: int = 8 * 1024 * 1024,
        max_backoff_seconds: float = 10.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        wait_for_right_time: Callable[[], Awaitable[None]] = trust_own_clock,
    ) -> None:
        self._store = store
        self._clock, self._wait_for_right_time = clock, wait_for_right_time
        self._metrics = metrics
        self._batch_documents, self._batch_bytes = batch_documents, batch_bytes
        self._backoff = Backoff("OpenSearch", max_backoff_seconds)
        self.written_indices: set[str] = set()
        """Indices this process has written to or verified."""
        self._refreshed: set[str] = set()
        self._months: dict[str, Index | None] = {}
        """By the name of a day's index, its family where the documents of the day are in the index of the month."""

    @property
    def is_waiting(self) -> bool:
        """True if the last request failed, so that the sink waits before the next one."""
        return self._backoff.is_waiting

    @property
    def waiting(self) -> Backoff:
        """Pauses between failed requests, with their cause."""
        return self._backoff

    async def close(self) -> None:
        await self._store.close()

    async def check(self) -> None:
        """Return when OpenSearch answers and has the templates of this version. Raises ``NotProvisionedError``."""
        for index in INDICES:
            await self._check_template(index.alias)

    async def write(self, documents: Sequence[Document]) -> WriteResult:
        """Return when every document is written, in conflict, or refused for good."""
        result = WriteResult()
        documents = await self._move_to_months(await self._refuse_impossible_days(documents, result))
        # Once for each index: a day has one, so this costs nothing after the first batch.
        for index in sorted({document.index for document in documents} - self.written_indices):
            await self._check_index(index)
        todo = deque(split_batches(documents, self._batch_documents, self._batch_bytes))
        async with asyncio.TaskGroup() as under_way:
            for _ in range(min(_PARALLEL_REQUESTS, len(todo))):
                under_way.create_task(self._write_all(todo, result))
        return result

    async def _move_to_months(self, documents: Sequence[Document]) -> Sequence[Document]:
        """Return the documents in the index of the month, where there is one for their day."""
        # Once for each day: `retention` makes the index of a month before the first document about it is written.
        for name in {document.index for document in documents} - self._months.keys():
            family = OF_DAYS.get(name.rpartition("-")[0])
            month = family.derive_month(name)[0] if family else name
            is_there = month != name and await self._request("GET", f"/{month}/_mapping", absent=(404,)) is not None
            self._months[name] = family if is_there else None
        if not any(self._months[document.index] for document in documents):
            return documents
        return [self._move_to_month(document) for document in documents]

    def _move_to_month(self, document: Document) -> Document:
        if (family := self._months[document.index]) is None:
            return document
        index, end = family.derive_month(document.index)
        return replace(document, index=index, id=document.id + end)

    async def _refuse_impossible_days(self, documents: Sequence[Document], result: WriteResult) -> list[Document]:
        """Return the documents with a plausible date, and refuse the others, because each wrong date would create an
        index."""
        if impossible := self._find_impossible({document.index for document in documents}):
            # The clock may have been set since it was found right: a good document is refused only by a right one.
            await self._wait_for_right_time()
            impossible = self._find_impossible(impossible)
        result.refused += [(document, IMPOSSIBLE_DAY) for document in documents if document.index in impossible]
        return [document for document in documents if document.index not in impossible]

    def _find_impossible(self, indices: set[str]) -> set[str]:
        now = self._clock()
        return {index for index in indices if not is_possible(index, now)}

    async def _write_all(self, todo: deque[list[Document]], result: WriteResult) -> None:
        """Send batches until none is left. The order does not matter: the index keeps the greatest version."""
        while todo:
            batch = todo.popleft()
            answers = await self._send_bulk(batch)
            # To the front and in their order: what failed is older than what waits.
            todo.extendleft(reversed(list_retries(batch, answers)))
            note(batch, answers, result)

    async def read_stored(self, documents: Sequence[Document]) -> list[dict[str, Any] | None]:
        """Read what the index has under the ids of ``documents``; None where there is nothing."""
        documents = await self._move_to_months(documents)
        wanted = [{"_index": document.index, "_id": document.id} for document in documents]
        # `_mget` answers 200 although a shard is away, which must not look like a document that is not there.
        part = _Part("docs", "found")
        answer = await self._request("POST", "/_mget", absent=(), part=part, body={"docs": wanted})
        return [document.get("_source") for document in (answer or {}).get("docs", [])]

    async def search(self, searches: Sequence[Search]) -> list[Hits]:
        """Return the hits of each search.

        They include what other processes wrote before the first search in an index, or before ``forget``; of later
        writes only those that a refresh has made searchable."""
        # A refresh costs the index much, so there is one for each index: what a process writes itself it has in its
        # memory.
        for index in sorted({name for header, _ in searches for name in header["index"]} - self._refreshed):
            await self._request("POST", f"/{index}/_refresh", absent=(404,))
            self._refreshed.add(index)
        hits: list[list[dict[str, Any]]] = []
        for start in range(0, len(searches), _SEARCHES_A_REQUEST):
            lines = [json_line for pair in searches[start : start + _SEARCHES_A_REQUEST] for json_line in pair]
            hits += await self._search(b"\n".join([*map(orjson.dumps, lines), b""]))
        return hits

    async def _search(self, body: bytes) -> list[list[dict[str, Any]]]:
        # `_msearch` answers 200 although single searches failed; half an answer would look like a pod without attempts.
        answer = await self._request("POST", "/_msearch", absent=(), part=_Part("responses", "hits"), body=body)
        return [response["hits"]["hits"] for response in (answer or {}).get("responses", [])]

    def forget(self) -> None:
        """Refresh the indices before the next search, because another process has written meanwhile."""
        self._refreshed.clear()

    def forget_indices(self, names: Sequence[str]) -> None:
        """Check the mappings of these indices before they are written again: they were deleted or restored."""
        self._metrics.lost_indices.inc(len(names))
        self.written_indices.difference_update(names)
        self._refreshed.difference_update(names)
        self._months.clear()

    async def _send_bulk(self, batch: Sequence[Document]) -> list[BulkResult]:
        # The pause after a failure is left out: the metric is about the index.
        with self._metrics.bulk_seconds.time():
            answer, response = await self._try(
                "POST", "/_bulk", body=encode_body(batch), params={"filter_path": _FILTER}
            )
        answers = judge_bulk(response, len(batch)) if answer.outcome is BulkOutcome.DONE else [answer] * len(batch)
        for outcome, count in Counter(result.outcome for result in answers).items():
            self._metrics.documents(outcome.value).inc(count)
        retried = next((result for result in answers if result.outcome is BulkOutcome.RETRY), None)
        if retried:
            self._metrics.retries.inc()
            await self._backoff.wait_after_failure(retried.cause)
        else:
            self._backoff.note_success()
        return answers

    async def _check_index(self, name: str) -> None:
        """Make sure that the index exists with the mapping of this version."""
        # OpenSearch creates a missing index when it is written to. Without a template that would be one with a guessed
        # mapping, so the template is checked first.
        mapping = await self._request("GET", f"/{name}/_mapping", absent=(404,))
        if mapping is None:
            await self._check_template(name.rpartition("-")[0])
            mapping = await self._create_index(name)
        for index in mapping.values():
            _check_version(f"index {name}", index.get("mappings", {}))
        self.written_indices.add(name)

    async def _create_index(self, name: str) -> dict[str, Any]:
        """Create the index; return its mapping.

        Tries until it succeeds: too many shards, or a template that contradicts another, are for an operator to repair.
        """
        while True:
            answer, _ = await self._try("PUT", f"/{name}")
            if answer.outcome is BulkOutcome.DONE or _EXISTS in answer.cause:
                answer, mapping = await self._try("GET", f"/{name}/_mapping")
                if answer.outcome is BulkOutcome.DONE and isinstance(mapping, dict):
                    self._backoff.note_success()
                    return mapping
            await self._backoff.wait_after_failure(f"index {name} can't be made: {answer.cause}")

    async def _check_template(self, name: str) -> None:
        answer = await self._request("GET", f"/_index_template/{name}", absent=(404,))
        if not answer or not answer.get("index_templates"):
            raise NotProvisionedError(f"OpenSearch has no index template {name}: {_PROVISION}")
        _check_version(f"index template {name}", answer["index_templates"][0].get("index_template", {}))

    async def _request(
        self, method: str, path: str, *, absent: tuple[int, ...], part: "_Part | None" = None, **options: Any
    ) -> dict[str, Any] | None:
        """Request until there is an answer with every ``part`` complete; None for a status in ``absent``."""
        while True:
            answer, response = await self._try(method, path, **options)
            cause = answer.cause
            if answer.outcome is BulkOutcome.DONE:
                content = response if isinstance(response, dict) else {}
                cause = part.find_failure(content) if part else ""
                if not cause:
                    self._backoff.note_success()
                    return content
            elif response in absent:
                self._backoff.note_success()
                return None
            await self._backoff.wait_after_failure(f"{method} {path}: {cause}")

    async def _try(self, method: str, path: str, **options: Any) -> tuple[BulkResult, Any]:
        """Try one request; return the meaning of its status, and the JSON of the answer or, after a failure, the
        status."""
        try:
            return BulkResult(BulkOutcome.DONE), await self._store.transport.perform_request(method, path, **options)
        except NoConnectionError as error:  # time-outs too, whose "status" is a word
            return BulkResult(BulkOutcome.RETRY, f"no answer: {explain_refusal(error, _NEEDED)}"), None
        except TransportError as error:
            status, cause = error.status_code, explain_refusal(error, _NEEDED)
            return judge_status(status, cause) if isinstance(status, int) else BulkResult(
                BulkOutcome.RETRY, cause
            ), status
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - an answer that is not JSON raises the parser's own errors
            return BulkResult(BulkOutcome.RETRY, f"{type(error).__name__}: {error}"), None


class _Part(NamedTuple):
    """Field of the parts of an answer that may have failed, and the field that each successful part has."""

    name: str
    proof: str

    def find_failure(self, answer: dict[str, Any]) -> str:
        """Find the error of the first part that failed; empty if none has."""
        failed = (part for part in answer.get(self.name, []) if self.proof not in part)
        return next((str(part.get("error"))[:300] for part in failed), "")


def _check_version(what: str, mapping: dict[str, Any]) -> None:
    version = mapping.get("_meta", {}).get("schedulerlog_mapping_version")
    if isinstance(version, int) and version > MAPPING_VERSION:
        raise NotProvisionedError(
            f"{what} has mapping version {version}, newer than {MAPPING_VERSION} of this process: start the newer "
            f"one or, to go back, {_PROVISION} of this version"
        )
    if version != MAPPING_VERSION:
        raise NotProvisionedError(f"{what} has mapping version {version}, not {MAPPING_VERSION}: {_PROVISION}")
