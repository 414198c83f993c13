"""The API as a real server on this machine, whose memory and index hold the golden records: no Kafka, no OpenSearch."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import uvicorn

from schemas.events import NodeStateChanged
from tests.support.harness.api_app import Caller
from tests.support.harness.golden_index import answer_search, read_alert, read_attempt, read_golden
from tests.support.waiting import until

POD = "llm/deepseek-5996b8569d-kgwgx"
"""Pod whose attempt is in memory: it was refused by a lock."""


@contextmanager
def golden_api(caller: Caller | None = None) -> Iterator[str]:
    """The base URL."""
    if caller is None:
        caller = Caller(answer_search)
        caller.remember(read_attempt())
        # The one node of the golden records, as the API's consumer reads it from Kafka.
        state, _ = read_golden(NodeStateChanged, "009")
        assert isinstance(state, NodeStateChanged)
        caller.app.state.devices.take(state, state.observed_at)
        caller.app.state.devices.is_caught_up = True
        caller.publish(read_alert(), evaluated_until=datetime.now(UTC))
    server = uvicorn.Server(uvicorn.Config(caller.app, port=0, log_level="warning", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
