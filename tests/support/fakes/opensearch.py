"""An OpenSearch of a few hundred lines less: templates, indices, documents and ``_answer_bulk`` over HTTP, with faults.

It applies what the real one applies (``create``, ``external_gte``) and answers as the real one answers. ``trouble``
says per bulk request what goes wrong; after its end nothing does.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from schemas.indices import INDICES

Trouble = Literal["none", "429", "503", "403", "items", "cut", "cut after applying", "no json", "401"]
TROUBLES: tuple[Trouble, ...] = (
    "none", "429", "503", "403", "items", "cut", "cut after applying", "no json", "401",
)  # fmt: skip


class Cut(Exception):  # noqa: N818 - a signal, not an error
    """End the connection without an answer."""


@dataclass
class FakeOpenSearch:
    trouble: Iterator[Trouble] = field(default_factory=lambda: iter(()))
    max_bytes: int = 100_000
    refused_indices: int = 0
    """Number of times that an index can't be made."""
    documents: dict[tuple[str, str], tuple[int, dict[str, Any]]] = field(default_factory=dict)
    indices: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, Any] = field(
        default_factory=lambda: {family.alias: family.build_template() for family in INDICES}
    )
    requests: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        self.requests.append(f"{method} {path}")
        parts = path.strip("/").split("/")
        if parts[0] == "_bulk":
            return self._answer_bulk(body)
        if parts[0] == "_mget":
            return self._answer_many(orjson.loads(body)["docs"])
        if parts[0] == "_index_template":
            return self._answer_template(parts[1])
        if len(parts) == 3:
            return self._answer_document(parts[0], parts[2])
        return self._index(method, parts[0])

    def _answer_template(self, name: str) -> tuple[int, Any]:
        if name not in self.templates:
            return 404, {"error": {"type": "resource_not_found_exception"}, "status": 404}
        return 200, {"index_templates": [{"name": name, "index_template": self.templates[name]}]}

    def _answer_document(self, index: str, document_id: str) -> tuple[int, Any]:
        document = self.documents.get((index, document_id))
        return (200, {"found": True, "_source": document[1]}) if document else (404, {"found": False})

    def _answer_many(self, wanted: list[dict[str, str]]) -> tuple[int, Any]:
        if next(self.trouble, "none") == "items":
            return 200, {"docs": [{"error": {"type": "shard_not_available_exception"}} for _ in wanted]}
        return 200, {"docs": [self._answer_document(document["_index"], document["_id"])[1] for document in wanted]}

    def _index(self, method: str, name: str) -> tuple[int, Any]:
        if method == "PUT" and self.refused_indices:
            self.refused_indices -= 1
            reason = "Validation Failed: 1: this cluster currently has [1000]/[1000] maximum shards open;"
            cause = {"type": "validation_exception", "reason": reason}
            return 400, {"error": {**cause, "root_cause": [cause]}, "status": 400}
        if method == "PUT":
            template = self.templates[name.rpartition("-")[0]]
            self.indices[name] = template["template"]["mappings"]
            return 200, {"acknowledged": True}
        if name not in self.indices:
            return 404, {"error": {"type": "index_not_found_exception"}, "status": 404}
        return 200, {name: {"mappings": self.indices[name]}}

    def _answer_bulk(self, body: bytes) -> tuple[int, Any]:
        trouble = next(self.trouble, "none")
        if len(body) > self.max_bytes:
            return 413, "too long"
        if trouble in ("429", "503", "403", "401"):
            return int(trouble), {"error": {"type": "trouble", "reason": trouble}, "status": int(trouble)}
        if trouble == "cut":
            raise Cut
        items = self._apply(body.splitlines(), skip_odd=trouble == "items")
        if trouble == "cut after applying":
            raise Cut
        if trouble == "no json":
            return 200, "<html>a proxy</html>"
        return 200, {"errors": any(next(iter(item.values()))["status"] > 299 for item in items), "items": items}

    def _apply(self, lines: list[bytes], *, skip_odd: bool) -> list[dict[str, Any]]:
        items = []
        for position, (action, source) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            ((kind, where),) = orjson.loads(action).items()
            status = 429 if skip_odd and position % 2 else self._write(kind, where, source)
            error = {} if status < 300 else {"error": {"type": f"type_{status}", "reason": "why"}}
            items.append({kind: {"status": status} | error})
        return items

    def _write(self, kind: str, where: dict[str, Any], source: bytes) -> int:
        document = orjson.loads(source)
        if document.get("poison"):
            return 400
        key = where["_index"], where["_id"]
        version = where.get("version", 1)
        stored = self.documents.get(key)
        least = stored[0] + (where.get("version_type") == "external") if stored else 0
        if stored and (kind == "create" or least > version):
            return 409
        self.documents[key] = version, document
        return 200 if stored else 201


@asynccontextmanager
async def serving(fake: FakeOpenSearch) -> AsyncIterator[FakeOpenSearch]:
    """The fake behind a real socket; ``fake.url`` says where."""

    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _serve_request(fake, reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, Cut):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve_connection, "127.0.0.1", 0, limit=2**24)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()


async def _serve_request(fake: FakeOpenSearch, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    status, answer = fake.answer(method, target.partition("?")[0], body)
    encoded = answer.encode() if isinstance(answer, str) else orjson.dumps(answer)
    writer.write(
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(encoded)}\r\n\r\n".encode()
        + encoded
    )
    await writer.drain()
    return True
