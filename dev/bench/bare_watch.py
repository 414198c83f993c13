"""``python -m dev.bench.bare_watch PORT SERVERS TOPIC``: Server-Sent Events of a topic, by the key of its records.

The least that a watch can be: a record's own bytes to the clients that ask for its key. It decodes nothing, checks no
rights, narrows and resumes nothing, and its queues have no bound.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from aiokafka import AIOKafkaConsumer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

Queues = defaultdict[bytes, set["asyncio.Queue[bytes]"]]


async def read(consumer: AIOKafkaConsumer, queues: Queues) -> None:
    async for record in consumer:
        for queue in queues.get(record.key, ()):
            queue.put_nowait(b"data: " + record.value + b"\n\n")


def create_app(servers: str, topic: str) -> Starlette:
    queues: Queues = defaultdict(set)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AIOKafkaConsumer(topic, bootstrap_servers=servers) as consumer:
            reading = asyncio.create_task(read(consumer, queues))
            yield
            reading.cancel()

    async def watch(request: Request) -> Response:
        key, queue = request.path_params["key"].encode(), asyncio.Queue[bytes]()
        queues[key].add(queue)

        async def iterate_events() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield await queue.get()
            finally:
                queues[key].discard(queue)

        return StreamingResponse(iterate_events(), media_type="text/event-stream")

    async def answer_alive(_: Request) -> Response:
        return Response("alive")

    return Starlette(routes=[Route("/", answer_alive), Route("/{key:path}", watch)], lifespan=lifespan)


if __name__ == "__main__":
    application = create_app(*sys.argv[2:])
    uvicorn.run(application, port=int(sys.argv[1]), access_log=False, log_level="error", timeout_graceful_shutdown=1)
