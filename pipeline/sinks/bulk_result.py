"""What OpenSearch's answer means for a document. Pure; one table.

======================  ===========  ====================================================================
answer                  outcome      why
======================  ===========  ====================================================================
2xx                     done
409                     conflict     a newer version is there, or a document that never changes
413                     split        the request is too long; one document alone that is too long is refused
400                     refused      the document does not fit the mapping, and would not at the next try
400 of the index        retry        the cluster has too many shards, or the index is closed: an operator repairs that
404 to a deletion       done         the document is gone already
429, 5xx, 403, 401, …   retry        the store is busy, down, read-only or not set up: an operator repairs that
no answer, time-out     retry        it may have been applied: writing it again changes nothing
======================  ===========  ====================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from pipeline.sinks.bulk import Document

NOT_FOUND: Final = 404
_ABOUT_THE_INDEX: Final = ("validation_exception", "index_closed_exception", "invalid_index_name_exception")
"""Types of 400 that say nothing about the document; the first is also that of a cluster with too many shards."""


class BulkOutcome(Enum):
    """What to do about a document after an answer of the index."""

    DONE = "done"
    CONFLICT = "conflict"
    SPLIT = "split"
    REFUSED = "refused"
    RETRY = "retry"


class BulkResult(NamedTuple):
    """The answer to one document, or to a whole request."""

    outcome: BulkOutcome
    cause: str = ""
    """Why it was not done, in OpenSearch's words."""


@dataclass(slots=True)
class WriteResult:
    """The documents that were not written."""

    conflicts: list[Document] = field(default_factory=list)
    """The index has a newer version of them."""
    refused: list[tuple[Document, str]] = field(default_factory=list)
    """The index will never accept them; with the cause."""


def of_status(status: int, cause: str = "") -> BulkResult:
    """The meaning of the HTTP status of a document or of a request."""
    if 200 <= status < 300:
        return BulkResult(BulkOutcome.DONE)
    if status == 400 and cause.startswith(_ABOUT_THE_INDEX):
        return BulkResult(BulkOutcome.RETRY, f"{status} {cause}")
    known = {409: BulkOutcome.CONFLICT, 413: BulkOutcome.SPLIT, 400: BulkOutcome.REFUSED}
    return BulkResult(known.get(status, BulkOutcome.RETRY), f"{status} {cause}".strip())


def of_item(item: Mapping[str, Any]) -> BulkResult:
    """The meaning of one entry of a bulk answer's ``items``; an entry that can't be understood means retry."""
    result = next(iter(item.values()), None) if isinstance(item, Mapping) else None
    status = result.get("status") if isinstance(result, Mapping) else None
    if not isinstance(result, Mapping) or not isinstance(status, int):
        return BulkResult(BulkOutcome.RETRY, "the answer has no status for the document")
    # 404 to a write means a missing index, which is retried like every other thing that an operator repairs.
    if status == NOT_FOUND and "delete" in item:
        return BulkResult(BulkOutcome.DONE)
    error = result.get("error")
    if isinstance(error, Mapping):
        return of_status(status, f"{error.get('type')}: {error.get('reason')}")
    return of_status(status, str(error or ""))


def of_bulk(answer: object, documents: int) -> list[BulkResult]:
    """The result of each document of a bulk request that was answered with 200."""
    if not isinstance(answer, Mapping):
        return [BulkResult(BulkOutcome.RETRY, "the answer is not a JSON object")] * documents
    # The usual case, without a look at a thousand items.
    if answer.get("errors") is False:
        return [BulkResult(BulkOutcome.DONE)] * documents
    items = answer.get("items")
    # Items stand in the order of the request: with another number of them none can be assigned.
    if not isinstance(items, list) or len(items) != documents:
        return [BulkResult(BulkOutcome.RETRY, f"the answer is not about {documents} documents")] * documents
    return [of_item(item) for item in items]


def again(batch: list[Document], answers: list[BulkResult]) -> list[list[Document]]:
    """The requests that follow: one of the documents that failed; two halves of a request that was refused as such."""
    # One document too many, or one that is not JSON, refuses the whole request: halves find it in a few steps.
    if len(batch) > 1 and _as_a_whole(answers):
        half = len(batch) // 2
        return [batch[:half], batch[half:]]
    pairs = zip(batch, answers, strict=True)
    retry = [document for document, answer in pairs if answer.outcome is BulkOutcome.RETRY]
    return [retry] if retry else []


def _as_a_whole(answers: list[BulkResult]) -> bool:
    """Was the request refused as such? Then smaller requests find out because of which document."""
    return all(answer is answers[0] for answer in answers) and answers[0].outcome in (
        BulkOutcome.SPLIT,
        BulkOutcome.REFUSED,
    )


def note(batch: list[Document], answers: list[BulkResult], result: WriteResult) -> None:
    """Add conflicts and refusals to ``result``."""
    if len(batch) > 1 and _as_a_whole(answers):
        return
    for document, answer in zip(batch, answers, strict=True):
        if answer.outcome is BulkOutcome.CONFLICT:
            result.conflicts.append(document)
        elif answer.outcome in (BulkOutcome.SPLIT, BulkOutcome.REFUSED):
            result.refused.append((document, answer.cause))
