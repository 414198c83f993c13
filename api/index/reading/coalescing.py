"""One request to OpenSearch for all callers who ask the same while it waits for its turn.

A sent request takes no more callers, so nobody gets an answer that is older than the question. Rights are checked
before a request, and each caller picks their items out of the answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from schemas.json_types import Json

MAX_ITEMS: Final = 16
"""Maximum number of items of one request: sixteen attempts of 5,000 nodes are some 10 MB."""
Send = Callable[[Callable[[], list[str]]], Awaitable[Json]]
"""Sends a request at its turn. Its argument closes the request and returns the distinct items."""


class _Request:
    def __init__(self) -> None:
        self.items: dict[str, None] = {}
        self.callers = 0
        self.answer: asyncio.Future[Json]


class Coalescing:
    def __init__(self) -> None:
        self._waiting: dict[Hashable, _Request] = {}

    async def answer(self, key: Hashable, item: str, send: Send) -> Json:
        """Answer the request for ``item``, together with all items of the same ``key`` until its turn.

        All callers share the answer, so nobody changes it. The request ends with its last caller, and raises as
        ``send``.
        """
        request = self._waiting.get(key)
        if request is None or len(request.items | {item: None}) > MAX_ITEMS:
            request = self._begin(key, send)
        request.items[item] = None
        request.callers += 1
        try:
            # A caller who leaves does not take the answer from the others.
            return await asyncio.shield(request.answer)
        finally:
            request.callers -= 1
            if not request.callers:
                self._close(key, request)
                request.answer.cancel()

    def _begin(self, key: Hashable, send: Send) -> _Request:
        request = self._waiting[key] = _Request()

        def close_request() -> list[str]:
            self._close(key, request)
            return list(request.items)

        request.answer = asyncio.ensure_future(send(close_request))
        request.answer.add_done_callback(_note_end)
        return request

    def _close(self, key: Hashable, request: _Request) -> None:
        if self._waiting.get(key) is request:
            del self._waiting[key]


def _note_end(answer: "asyncio.Future[Json]") -> None:
    # After the last caller has left, nobody retrieves the error, and asyncio would log it as an error of the program.
    if not answer.cancelled():
        answer.exception()
