"""M1, M2 at the assistant over HTTP: what it takes of all callers together."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import orjson
import pytest

from cli.assistant.bounded_calls import MAX_BYTES, BoundedCalls

Message = MutableMapping[str, Any]


async def echo(_: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body."""
    length = len((await receive())["body"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d" % length})


async def post_body(app: BoundedCalls, body: bytes, *, held: asyncio.Event | None = None, method: str = "POST") -> int:
    """Post a body and return the status of the answer. The body's last byte arrives when ``held`` is set."""
    parts = [(body[:-1], True), (body[-1:], False)]
    sent: list[Message] = []

    async def receive() -> Message:
        if len(parts) == 1 and held:
            await held.wait()
        part, more = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "http", "method": method, "headers": []}, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize("body", [b" " * (MAX_BYTES + 1), b"[" + b"[]," * 1_001 + b"1]", b"[" + b'"",' * 1_001 + b"1]"])
async def test_m1_a_body_that_is_too_long_or_has_too_many_values_is_refused(body: bytes) -> None:
    """M1: a body of 4 MB of empty lists took 90 MB, and twenty of them held the server for half a minute."""
    assert await post_body(BoundedCalls(echo), body) == 413


async def test_m1_the_text_of_a_log_is_one_value() -> None:
    text = 'I1121 score.go:1] "node" {"a": [1, 2, {}]} C:\\\n' * 50_000
    assert await post_body(BoundedCalls(echo), orjson.dumps({"text": text})) == 200


async def test_m1_large_bodies_of_all_callers_share_their_memory() -> None:
    app, held = BoundedCalls(echo), asyncio.Event()
    large = b" " * MAX_BYTES
    waiting = [asyncio.create_task(post_body(app, large, held=held)) for _ in range(2)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert [await post_body(app, large), await post_body(app, b"{}")] == [503, 200]
    held.set()
    assert await asyncio.gather(*waiting) == [200, 200]
    assert await post_body(app, large) == 200


async def test_m2_no_stream_is_kept_open_on_which_nothing_is_sent() -> None:
    assert [await post_body(BoundedCalls(echo), b"{}", method=method) for method in ("GET", "DELETE")] == [405, 405]
