"""After any sequence of faults of OpenSearch the documents are the same; `make stress` tries ten thousand sequences.

The server is the fake, the client is the real one: only the socket between them is left out, which
``test_opensearch`` has.
"""

import asyncio
import random
from typing import Any

import orjson
import pytest
from opensearchpy import AsyncOpenSearch
from opensearchpy._async.http_aiohttp import AsyncConnection
from opensearchpy.exceptions import ConnectionError as NoConnectionError
from prometheus_client import CollectorRegistry

from pipeline.metrics import IndexMetrics
from pipeline.sinks.opensearch import OpenSearchSink
from tests.support.builders.index_documents import a_document
from tests.support.fakes.opensearch import TROUBLES, Cut, FakeOpenSearch
from tests.support.stress import count_examples

SEQUENCES = count_examples(250)
pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("quiet_log")]


class NoSocket(AsyncConnection):  # type: ignore[misc]
    """The client's connection, answered by a fake without a network between them."""

    fake: FakeOpenSearch

    async def perform_request(
        self, method: str, url: str, params: Any = None, body: Any = None, *_: Any, **__: Any
    ) -> tuple[int, dict[str, str], str]:
        try:
            status, answer = self.fake.answer(method, url, body or b"")
        except Cut:
            raise NoConnectionError("N/A", "cut", None) from None
        text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
        if status >= 300:
            self._raise_error(status, text, "application/json")
        return status, {"content-type": "application/json"}, text

    async def close(self) -> None:
        """Close nothing: nothing is open."""


@pytest.fixture
def store() -> AsyncOpenSearch:
    return AsyncOpenSearch(
        hosts=["http://127.0.0.1:9"], connection_class=NoSocket, max_retries=0, retry_on_timeout=False
    )


async def test_the_documents_are_the_same(store: AsyncOpenSearch) -> None:
    for seed in range(SEQUENCES):
        await write_on_a_bad_day(store, random.Random(seed), f"sequence {seed}")


async def write_on_a_bad_day(store: AsyncOpenSearch, chance: random.Random, name: str) -> None:
    versions = [a_document(f"a{i}", version) for i in range(4) for version in chance.sample(range(1, 9), 3)]
    records = [a_document(f"r{i}", None) for i in range(4)]
    todo = [*versions, *records, a_document("poisoned", poison=True)]
    chance.shuffle(todo)
    troubles = chance.choices(TROUBLES, k=chance.randrange(25))
    fake = NoSocket.fake = FakeOpenSearch(iter(troubles), max_bytes=chance.choice([500, 10**6]))
    sink = OpenSearchSink(
        store,
        IndexMetrics("test", CollectorRegistry()),
        max_backoff_seconds=0,
        batch_documents=chance.choice([1, 3, 100]),
    )
    result = await asyncio.wait_for(sink.write(todo), 30)
    newest = {entry.id: max(other.version or 0 for other in versions if other.id == entry.id) for entry in versions}
    stored = {document_id: version for (_, document_id), (version, _) in fake.documents.items()}
    assert stored == newest | {record.id: 1 for record in records}, (name, troubles)
    assert [document.id for document, _ in result.refused] == ["poisoned"], (name, troubles)
