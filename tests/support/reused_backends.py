"""One Kafka and one OpenSearch that the tests of a worker have to themselves, one after the other.

A start of the two takes a dozen seconds of CPU, and to empty them one. Who has them may kill, pause and restart them:
the next one finds them running and empty.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import DeleteGroupsRequest

from dev import embedded
from dev.demo.stack import Stack, stack
from dev.embedded.lock import KINDS, ServerKind
from tests.support.backends import SETTING, read_source
from tests.support.harness.forked import ForkedProcesses

# A member of a group that was killed is in it until its session ends.
_EMPTY_SECONDS: Final = 30.0
_LOG: Final = logging.getLogger(__name__)


class ReusedBackends:
    """Servers that are started when first asked for; ``close`` ends them."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._servers: embedded.Backends | None = None
        self._is_taken = False

    @contextmanager
    def taken(self, only: ServerKind | None = None) -> Iterator[embedded.Backends]:
        """Both servers, or only one of them, running and empty. Who asks while others have them gets new ones.

        Skips the test where it may not do this to the servers of the run.
        """
        if read_source(os.environ) != "embedded":
            pytest.skip(f"kills and empties servers, which it may do only to its own: needs {SETTING}=embedded")
        if self._is_taken:
            with embedded.backends(only=only) as servers:
                yield servers
            return
        self._is_taken = True
        try:
            yield self._start_servers((only,) if only else KINDS)
        finally:
            self._is_taken = False

    def close(self) -> None:
        """Stop them; the next test that asks starts them again."""
        self._servers = None
        self._stack.close()

    def _start_servers(self, kinds: Sequence[ServerKind]) -> embedded.Backends:
        if self._servers is not None:
            try:
                _set_running(self._servers, kinds)
                _empty(self._servers, kinds)
            except (embedded.EmbeddedError, httpx.HTTPError, OSError, AssertionError) as error:
                _LOG.warning("new servers instead of those that can't be emptied: %s", error)
                self.close()
        if self._servers is None:
            self._servers = self._stack.enter_context(embedded.backends())
        return self._servers


@contextmanager
def shared_stack(folder: Path, cluster_source: Path, **options: Any) -> Iterator[Stack]:
    """The stack of the demo on the servers of this worker, with forked services."""
    servers = reused_backends.taken() if read_source(os.environ) == "embedded" else None
    with stack(folder, cluster_source, servers, ForkedProcesses, **options) as running:
        yield running


def _set_running(servers: embedded.Backends, kinds: Sequence[ServerKind]) -> None:
    for server in servers.servers:
        if server.process and server.is_alive:
            server.process.send(signal.SIGCONT)
    servers.start(kinds)


def _empty(servers: embedded.Backends, kinds: Sequence[ServerKind]) -> None:
    if "kafka" in kinds:
        # In a thread: a test that is a coroutine asks for them while its loop runs.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(_empty_kafka(servers.bootstrap_servers))).result()
    if "opensearch" in kinds:
        _empty_opensearch(servers.opensearch_url)


async def _empty_kafka(bootstrap_servers: str) -> None:
    """Delete all topics and groups."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    deadline = time.monotonic() + _EMPTY_SECONDS
    try:
        # What a broker is asked to delete is still listed for a moment, and a group can't go before its last member.
        while left := [*await _delete_topics(admin), *await _delete_groups(admin)]:
            assert time.monotonic() < deadline, f"{', '.join(left)} can't be deleted"
            await asyncio.sleep(0.1)
    finally:
        await admin.close()


async def _delete_topics(admin: AIOKafkaAdminClient) -> list[str]:
    names = [name for name in await admin.list_topics() if not name.startswith("__")]
    if names:
        await admin.delete_topics(names)
    return names


async def _delete_groups(admin: AIOKafkaAdminClient) -> list[str]:
    names = [name for name, _ in await admin.list_consumer_groups()]
    if names:
        await admin._send_request(DeleteGroupsRequest(names))
    return names


def _empty_opensearch(url: str) -> None:
    """Delete all indices, templates and repositories, and take settings of the cluster back."""
    with httpx.Client(base_url=url, trust_env=False, timeout=60.0) as client:
        names = [row["index"] for row in client.get("/_cat/indices", params={"format": "json"}).json()]
        for path in (*names, "_index_template/*", "_component_template/*", "_snapshot/*"):
            client.delete(f"/{path}").raise_for_status()
        nothing = {"transient": {"*": None}, "persistent": {"*": None}}
        client.put("/_cluster/settings", json=nothing).raise_for_status()


reused_backends: Final = ReusedBackends()
"""Backends of this worker."""
