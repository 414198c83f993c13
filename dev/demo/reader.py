"""Reads what a person would read: answers of the API, and event messages from their topic."""

import asyncio
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx

from runtime.kafka.consumer import connected, create_consumer, read_to_end
from runtime.settings.kafka_connection import build_kafka_connection
from schemas.codec.records import decode
from schemas.events import MessagesEmitted, PodMessage
from schemas.json_types import Json
from schemas.topics import MESSAGES

T = TypeVar("T")


class Reader:
    """A client of the API and a consumer of the event messages."""

    def __init__(self, api_url: str, bootstrap_servers: str, authority: Path | None = None) -> None:
        """Create a reader. ``authority`` signs the certificate of an HTTPS URL."""
        self._url = api_url
        self._verify = ssl.create_default_context(cafile=authority) if authority else True
        self._bootstrap_servers = bootstrap_servers

    def get(self, path: str, **query: str) -> Json:
        answer: Json = httpx.get(self._url + path, params=query, timeout=60, verify=self._verify).json()
        return answer

    def get_schedulerlog(self, pod: str) -> Json:
        return self.get(build_schedulerlog_path(pod))

    def get_status(self, pod: str) -> str:
        """Get the status of the pod; empty while the API does not know the pod."""
        return str(self.get_schedulerlog(pod).get("status", ""))

    def list_episodes(self, pod: str) -> list[Json]:
        episodes: list[Json] = self.get(build_schedulerlog_path(pod) + "/history").get("episodes", [])
        return episodes

    def search(self, **query: str) -> Json:
        return self.get("/api/v1/schedulerlogs", **query)

    def read_messages(self, count: int, timeout_seconds: float = 30) -> list[PodMessage]:
        """Read the first ``count`` event messages on the topic, by the time they report; fewer after a timeout."""
        return sorted(
            asyncio.run(self._consume_messages(count, timeout_seconds)), key=lambda message: message.reported_at
        )

    async def _consume_messages(self, count: int, timeout_seconds: float) -> list[PodMessage]:
        messages: list[PodMessage] = []
        async with connected(
            create_consumer(build_kafka_connection(self._bootstrap_servers), MESSAGES.name)
        ) as consumer:
            deadline = time.monotonic() + timeout_seconds
            while len(messages) < count and time.monotonic() < deadline:
                async for record in read_to_end(consumer):
                    event = decode(record.value, record.headers)
                    messages += event.list_messages() if isinstance(event, MessagesEmitted) else []
                await asyncio.sleep(0.05)
        return messages


def build_schedulerlog_path(pod: str) -> str:
    return build_pod_path(pod, "schedulerlog")


def build_pod_path(pod: str, answer: str) -> str:
    namespace, name = pod.split("/")
    return f"/api/v1/namespaces/{namespace}/pods/{name}/{answer}"


def until(read: Callable[[], T], expected: T, timeout_seconds: float = 30) -> T:
    """Read until the result is ``expected``, and return it; the last result after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while (answer := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer
