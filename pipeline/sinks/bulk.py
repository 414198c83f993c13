"""Documents, and the body of ``POST _bulk`` that writes them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from schemas.codec.records import encode_value


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A document to be written, or to be deleted."""

    index: str
    id: str
    source: bytes
    """JSON without line breaks."""
    version: int | None = None
    """The index keeps the greatest version of an id; None for a document that never changes once it is written."""
    origin: Any = None
    """The record that it was made of, for the dead letter if the index refuses it."""
    is_deletion: bool = False
    """The document is to be deleted; ``source`` is empty."""
    keeps_first: bool = False
    """The index keeps the first of two documents with the same greatest version, not the last."""

    def supersedes(self, known: "Document") -> bool:
        """Does the index keep this one, written after ``known`` of the same id?"""
        one, other = self.version or 0, known.version or 0
        return one > other if self.keeps_first else one >= other

    @property
    def size(self) -> int:
        """Bytes in a bulk request, approximately: 150 for the line that names it."""
        return len(self.source) + 150


def source(document: dict[str, Any]) -> bytes:
    """The document as JSON on one line, as ``_bulk`` requires."""
    json = encode_value(document)
    # Records are embedded as they were written, and their producer may have written them with line breaks.
    return orjson.dumps(orjson.loads(json)) if b"\n" in json or b"\r" in json else json


def body(documents: Sequence[Document]) -> bytes:
    """The request that writes them."""
    # The empty last item ends the body with a line break, without which OpenSearch refuses it.
    return b"\n".join([line for document in documents for line in _lines(document)] + [b""])


def _lines(document: Document) -> tuple[bytes, ...]:
    return (_action(document),) if document.is_deletion else (_action(document), document.source)


def _action(document: Document) -> bytes:
    target: dict[str, Any] = {"_index": document.index, "_id": document.id}
    if document.version is None:
        # `create` refuses an id that exists (409), so what is there is not written a second time.
        return orjson.dumps({"create": target})
    action = "delete" if document.is_deletion else "index"
    # OpenSearch's names: a smaller version is a conflict (409) with both, an equal one with ``external`` alone.
    version_type = "external" if document.keeps_first else "external_gte"
    return orjson.dumps({action: target | {"version": document.version, "version_type": version_type}})


def batches(documents: Sequence[Document], max_documents: int, max_bytes: int) -> Iterator[list[Document]]:
    """Runs of at most ``max_documents`` and about ``max_bytes``; a larger document gets a run of its own."""
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
