"""A server of webhooks and CloudEvents on a real socket, which keeps what is posted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Receiver:
    """An HTTP server that takes what is posted; ``status`` is its answer, ``seconds`` later, and 401 without the
    ``token`` that it may have."""

    url: str = ""
    status: int = 200
    seconds: float = 0.0
    token: str = ""
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refused: int = 0

    async def take(self, request: web.Request) -> web.Response:
        is_caller = not self.token or request.headers.get("Authorization") == f"Bearer {self.token}"
        status = self.status if is_caller else 401
        if status >= 300:
            self.refused += 1
        else:
            self.bodies.append(await request.json())
            self.headers.append(dict(request.headers))
        await asyncio.sleep(self.seconds)
        return web.Response(status=status)

    @property
    def texts(self) -> list[str]:
        return [body["text"] for body in self.bodies]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver, application = Receiver(), web.Application()
    application.router.add_post("/hook", receiver.take)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()
