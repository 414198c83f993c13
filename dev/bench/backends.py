"""Parts of the servers that benchmarks share: a folder, a bare handler to compare with, records on a topic."""

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from dev.demo.processes import Processes
from schemas.codec.records import EncodedRecord

FOLDER = Path(".run/bench")


def start_bare(processes: Processes, port: str, body: bytes, name: str = "bare", *words: str) -> None:
    """Start a handler that answers every request with ``body``, to measure the HTTP server alone."""
    path = FOLDER / f"bare-{port}"
    path.write_bytes(body)
    processes.start(name, "dev.bench.bare", port, str(path), *words)
    processes.wait_ready(name, f"http://127.0.0.1:{port}/")


def send(servers: str, topic: str, records: Iterable[EncodedRecord]) -> int:
    """Write the records as the scheduler does (zstd, all replicas); returns how many there were."""
    return asyncio.run(_send(servers, topic, records))


async def _send(servers: str, topic: str, records: Iterable[EncodedRecord]) -> int:
    await _make(servers, topic)
    sent = 0
    async with AIOKafkaProducer(
        bootstrap_servers=servers,
        compression_type="zstd",
        enable_idempotence=True,
        linger_ms=20,
        max_batch_size=900_000,
    ) as producer:
        for record in records:
            await producer.send(topic, record.value, key=record.key, headers=record.headers)
            sent += 1
        await producer.flush()
    return sent


async def _make(servers: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        if topic not in await admin.list_topics():
            # As many partitions as the real topics have; the default of one would leave a worker without parallel work.
            await admin.create_topics([NewTopic(topic, num_partitions=12, replication_factor=1)])
    finally:
        await admin.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        """Log nothing."""


@contextmanager
def collector() -> Iterator[str]:
    """Its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
