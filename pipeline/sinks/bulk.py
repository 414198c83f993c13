"""Documents, the body of ``POST _bulk`` that writes them, and the meaning of OpenSearch's answer. Pure.

======================  ===========  ====================================================================
answer                  outcome      why
======================  ===========  ====================================================================
2xx                     done
409                     conflict     a newer version is there, or a document that never changes
413                     split        the request is too long; a single document that is too long is refused
400                     refused      the document does not fit the mapping, and would not at the next try
400 of the index        retry        the cluster has too many shards, or the index is closed: an operator repairs that
404 to a deletion       done         the document was deleted before
429, 5xx, 403, 401, …   retry        the store is busy, down, read-only or not set up: an operator repairs that
no answer, time-out     retry        it may have been applied: writing it again changes nothing
======================  ===========  ====================================================================
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

import orjson

from schemas.codec.records import encode_value


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A document to be written, or to be deleted."""

    index: str
    id: str
    source: bytes
    """The document as JSON without line breaks."""
    version: int | None = None
    """The version, of which the index keeps the greatest; None for a document that never changes once it is written."""
    origin: Any = None
    """The record that it was made of, for the dead letter if the index refuses it."""
    is_deletion: bool = False
    """True for a document to delete; ``source`` is empty."""
    keeps_first: bool = False
    """True if the index keeps the first of two documents with the same greatest version, not the last."""

    def supersedes(self, previous: "Document") -> bool:
        """Tell whether the index keeps this document, written after ``previous`` of the same id."""
        version, stored = self.version or 0, previous.version or 0
        return version > stored if self.keeps_first else version >= stored

    @property
    def size(self) -> int:
        """Approximate bytes in a bulk request: 150 for the line that names it."""
        return len(self.source) + 150


def encode_source(document: dict[str, Any]) -> bytes:
    """Encode the document as JSON on one line, as ``_bulk`` requires."""
    json = encode_value(document)
    # Records are embedded as they were written, and their producer may have written them with line breaks.
    return orjson.dumps(orjson.loads(json)) if b"\n" in json or b"\r" in json else json


def encode_body(documents: Sequence[Document]) -> bytes:
    """Encode the request that writes the documents."""
    # The empty last item ends the body with a line break, without which OpenSearch refuses it.
    return b"\n".join([line for document in documents for line in _list_lines(document)] + [b""])


def _list_lines(document: Document) -> tuple[bytes, ...]:
    return (_encode_action(document),) if document.is_deletion else (_encode_action(document), document.source)


def _encode_action(document: Document) -> bytes:
    target: dict[str, Any] = {"_index": document.index, "_id": document.id}
    if document.version is None:
        # `create` refuses an id that exists (409), so what is there is not written a second time.
        return orjson.dumps({"create": target})
    action = "delete" if document.is_deletion else "index"
    # OpenSearch's names: a smaller version is a conflict (409) with both, an equal one with ``external`` alone.
    version_type = "external" if document.keeps_first else "external_gte"
    return orjson.dumps({action: target | {"version": document.version, "version_type": version_type}})


def split_batches(documents: Sequence[Document], max_documents: int, max_bytes: int) -> Iterator[list[Document]]:
    """Split the documents into runs of at most ``max_documents`` and about ``max_bytes``; a larger document gets its
    own."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        # Not where the batch is empty: a document larger than the bound would never be sent.
        if batch and (len(batch) >= max_documents or size + document.size > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += document.size
    if batch:
        yield batch


NOT_FOUND: Final = 404
_ABOUT_THE_INDEX: Final = ("validation_exception", "index_closed_exception", "invalid_index_name_exception")
"""Types of 400 that say nothing about the document; the first is also the answer of a cluster with too many shards."""


class BulkOutcome(Enum):
    """Action for a document after an answer of the index."""

    DONE = "done"
    CONFLICT = "conflict"
    SPLIT = "split"
    REFUSED = "refused"
    RETRY = "retry"


class BulkResult(NamedTuple):
    """The answer to one document, or to a whole request."""

    outcome: BulkOutcome
    cause: str = ""
    """Cause of a failure, in OpenSearch's words."""


@dataclass(slots=True)
class WriteResult:
    """The documents that were not written."""

    conflicts: list[Document] = field(default_factory=list)
    """Documents of which the index has a newer version."""
    refused: list[tuple[Document, str]] = field(default_factory=list)
    """Documents that the index will never accept, each with the cause."""


def judge_status(status: int, cause: str = "") -> BulkResult:
    """Judge the HTTP status of a document or of a request."""
    if 200 <= status < 300:
        return BulkResult(BulkOutcome.DONE)
    if status == 400 and cause.startswith(_ABOUT_THE_INDEX):
        return BulkResult(BulkOutcome.RETRY, f"{status} {cause}")
    outcomes = {409: BulkOutcome.CONFLICT, 413: BulkOutcome.SPLIT, 400: BulkOutcome.REFUSED}
    return BulkResult(outcomes.get(status, BulkOutcome.RETRY), f"{status} {cause}".strip())


def judge_item(item: Mapping[str, Any]) -> BulkResult:
    """Judge one entry of a bulk answer's ``items``; an entry that can't be understood means retry."""
    result = next(iter(item.values()), None) if isinstance(item, Mapping) else None
    status = result.get("status") if isinstance(result, Mapping) else None
    if not isinstance(result, Mapping) or not isinstance(status, int):
        return BulkResult(BulkOutcome.RETRY, "the answer has no status for the document")
    # 404 to a write means a missing index, which is retried like every other thing that an operator repairs.
    if status == NOT_FOUND and "delete" in item:
        return BulkResult(BulkOutcome.DONE)
    error = result.get("error")
    if isinstance(error, Mapping):
        return judge_status(status, f"{error.get('type')}: {error.get('reason')}")
    return judge_status(status, str(error or ""))


def judge_bulk(answer: object, documents: int) -> list[BulkResult]:
    """Judge each document of a bulk request that was answered with 200."""
    if not isinstance(answer, Mapping):
        return [BulkResult(BulkOutcome.RETRY, "the answer is not a JSON object")] * documents
    # The usual case, without a look at a thousand items.
    if answer.get("errors") is False:
        return [BulkResult(BulkOutcome.DONE)] * documents
    items = answer.get("items")
    # Items stand in the order of the request: with another number of them none can be assigned.
    if not isinstance(items, list) or len(items) != documents:
        return [BulkResult(BulkOutcome.RETRY, f"the answer is not about {documents} documents")] * documents
    return [judge_item(item) for item in items]


def list_retries(batch: list[Document], answers: list[BulkResult]) -> list[list[Document]]:
    """List the requests that follow: one of the documents that failed, or two halves of a request refused as such."""
    # One document too many, or one that is not JSON, refuses the whole request: halves find it in a few steps.
    if len(batch) > 1 and _is_refused_as_such(answers):
        half = len(batch) // 2
        return [batch[:half], batch[half:]]
    pairs = zip(batch, answers, strict=True)
    retry = [document for document, answer in pairs if answer.outcome is BulkOutcome.RETRY]
    return [retry] if retry else []


def _is_refused_as_such(answers: list[BulkResult]) -> bool:
    """Tell whether the request was refused as such: smaller requests then find out because of which document."""
    return all(answer is answers[0] for answer in answers) and answers[0].outcome in (
        BulkOutcome.SPLIT,
        BulkOutcome.REFUSED,
    )


def note(batch: list[Document], answers: list[BulkResult], result: WriteResult) -> None:
    """Add conflicts and refusals to ``result``."""
    if len(batch) > 1 and _is_refused_as_such(answers):
        return
    for document, answer in zip(batch, answers, strict=True):
        if answer.outcome is BulkOutcome.CONFLICT:
            result.conflicts.append(document)
        elif answer.outcome in (BulkOutcome.SPLIT, BulkOutcome.REFUSED):
            result.refused.append((document, answer.cause))
