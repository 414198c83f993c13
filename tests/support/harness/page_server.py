"""The application of a test behind a real socket, for a browser."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import Receive, Scope, Send

from tests.support.harness.api_app import Caller
from tests.support.waiting import until


class _Following:
    """The application without its lifespan, which would look for Kafka; its memory is always current."""

    def __init__(self, caller: Caller) -> None:
        self.app = caller.app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.app.state.topic.answered_at = time.monotonic()
        await self.app(scope, receive, send)


@contextmanager
def page_server(caller: Caller) -> Iterator[str]:
    """The address, without a slash at its end."""
    server = uvicorn.Server(uvicorn.Config(_Following(caller), port=0, lifespan="off", log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert until(lambda: server.started)
        yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
