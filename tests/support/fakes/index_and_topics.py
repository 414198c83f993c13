"""An index in memory, which keeps what the real one promises, no more."""

from collections.abc import Sequence
from operator import ge, gt, le, lt
from typing import Any

import orjson

from pipeline.sinks.bulk import Document, WriteResult
from tests.support.fakes.topics import FakeTopics, Log, stream

__all__ = ["FakeIndex", "FakeTopics", "Log", "stream"]


class FakeIndex:
    """Keeps documents by ``external_gte`` or ``external``; refuses those whose id stands in ``refused``."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.indices: dict[str, str] = {}
        self.versions: dict[str, int | None] = {}
        self.refused: set[str] = set()
        self.writes = 0
        self.searches: list[dict[str, Any]] = []

    async def write(self, documents: Sequence[Document]) -> WriteResult:
        written = WriteResult()
        for document in documents:
            self._write(document, written)
        return written

    def _write(self, document: Document, written: WriteResult) -> None:
        self.writes += 1
        version = self.versions.get(document.id)
        if document.id in self.refused:
            written.refused.append((document, "400 mapper_parsing_exception: because"))
        elif document.id in self.documents and (
            document.version is None or (version or 0) + document.keeps_first > document.version
        ):
            written.conflicts.append(document)
        else:
            self.documents[document.id] = orjson.loads(document.source)
            self.indices[document.id] = document.index
            self.versions[document.id] = document.version

    async def fetch(self, index: str, document_id: str) -> dict[str, object] | None:
        source = self.documents.get(document_id)
        return {"_source": source} if source else None

    async def search(self, searches: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[list[dict[str, Any]]]:
        self.searches += [body for _, body in searches]
        return [self._search(header["index"], body) for header, body in searches]

    def _search(self, indices: Sequence[str], body: dict[str, Any]) -> list[dict[str, Any]]:
        """Search terms and ranges over texts and times; sorted by one field, or one of each value of a field."""
        clauses = body["query"]["bool"]["filter"]
        sources = [
            source
            for name, source in self.documents.items()
            if self.indices[name] in indices and all(_matches(clause, source) for clause in clauses)
        ]
        for field, order in body.get("sort", [{}])[0].items():
            descending = order == "desc" or (isinstance(order, dict) and order["order"] == "desc")
            sources.sort(key=lambda source: str(source[field]), reverse=descending)
        if collapsed := body.get("collapse"):
            field = collapsed["field"]
            sources = list({source[field]: source for source in sources}.values())
            return [{"fields": {field: [source[field]]}} for source in sources[: body["size"]]]
        return [{"_source": source} for source in sources[: body["size"]]]

    def forget(self) -> None:
        """Do nothing: this index remembers nothing that others can't see yet."""

    @property
    def attempts(self) -> dict[str, dict[str, Any]]:
        return self.list_documents("schedulerlog-attempts")

    def list_documents(self, alias: str) -> dict[str, dict[str, Any]]:
        return {key: source for key, source in self.documents.items() if self.indices[key].startswith(alias)}


def _matches(clause: dict[str, Any], document: dict[str, Any]) -> bool:
    (kind, condition) = next(iter(clause.items()))
    (field, wanted) = next(iter(condition.items()))
    if kind == "term":
        return bool(document[field] == wanted)
    if kind == "terms":
        return document[field] in wanted
    compare = {"gte": ge, "gt": gt, "lt": lt, "lte": le}
    return all(compare[word](document[field], limit) for word, limit in wanted.items())
