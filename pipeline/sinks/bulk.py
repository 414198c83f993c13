"""Documents and the body of ``POST _bulk``: pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from schemas.codec.records import encode_value


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    index: str
    id: str
    source: bytes
    """JSON without line breaks."""
    version: int | None = None
    """Of two tellings the greater one stays; None for a document that never changes once it is there."""
    origin: Any = None
    """Where it came from, for whoever has to say that it was refused."""
    is_gone: bool = False
    """It is to be deleted; there is no source then."""

    @property
    def size(self) -> int:
        """Bytes in a bulk request, about."""
        return len(self.source) + 150


def source(document: dict[str, Any]) -> bytes:
    """The document as JSON on one line: an embedded record may have been written with line breaks."""
    said = encode_value(document)
    return orjson.dumps(orjson.loads(said)) if b"\n" in said or b"\r" in said else said


def body(documents: Sequence[Document]) -> bytes:
    return b"\n".join([line for each in documents for line in _lines(each)] + [b""])


def _lines(document: Document) -> tuple[bytes, ...]:
    return (_action(document),) if document.is_gone else (_action(document), document.source)


def _action(document: Document) -> bytes:
    where: dict[str, Any] = {"_index": document.index, "_id": document.id}
    if document.version is None:
        return orjson.dumps({"create": where})
    what = "delete" if document.is_gone else "index"
    return orjson.dumps({what: where | {"version": document.version, "version_type": "external_gte"}})


def batches(documents: Sequence[Document], most: int, most_bytes: int) -> Iterator[list[Document]]:
    """Runs of at most ``most`` documents and about ``most_bytes``; one that is larger gets a run of its own."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        if batch and (len(batch) >= most or size + document.size > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += document.size
    if batch:
        yield batch
