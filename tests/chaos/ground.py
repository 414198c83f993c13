"""The setting of the faults: real servers, and the real services as processes."""

import asyncio
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from dev import embedded
from dev.demo.processes import Processes, find_free_ports
from schemas.codec.records import EncodedRecord
from schemas.topics import DECISIONS
from tests.chaos.load import Load
from tests.chaos.view import View
from tests.support.builders.kube_objects import a_device, a_node
from tests.support.harness.forked import ForkedProcesses
from tests.support.harness.pipeline_process import INDEX_WRITERS, INDEXED

NODES = 6
PACE: dict[str, str] = {
    "SCHEDULERLOG_SESSION_TIMEOUT": "6",
    "SCHEDULERLOG_MAX_BACKOFF": "1",
    "SCHEDULERLOG_INCOMPLETE_AFTER": "120",
    "SCHEDULERLOG_COUNT_INTERVAL": "0.5",
}
"""Most faults last seconds; but an attempt must not count as incomplete while a process is stopped for 90."""

_LARGEST: Final = 32 * 1024**2
"""Bytes of a record that is sent, before it is packed."""
_MAX_SHARDS: Final = "cluster.max_shards_per_node"
_NO_REPLICA: Final = {"number_of_replicas": 0}
_FLOODED: Final = "index.blocks.read_only_allow_delete"
_WATERMARKS: Final = tuple(
    f"cluster.routing.allocation.disk.watermark.{level}" for level in ("low", "high", "flood_stage")
)
_DISK_SETTINGS: Final = (
    "cluster.routing.allocation.disk.threshold_enabled", "cluster.info.update.interval", *_WATERMARKS,
)  # fmt: skip


@dataclass
class Ground:
    """The services by name: ``scheduler``, ``index``, ``api``, and workers and other index writers of any name."""

    folder: Path
    servers: embedded.Backends
    processes: Processes
    client: httpx.Client
    default_environment: dict[str, str] = field(default_factory=dict)
    """Variables of every worker and index writer."""
    ports: dict[str, str] = field(default_factory=lambda: find_free_ports("scheduler", "index", "api"))
    spool: Path = field(init=False)

    def __post_init__(self) -> None:
        self.spool = self.folder / "spool"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.jsonl"

    def get_url(self, service: str) -> str:
        return f"http://127.0.0.1:{self.ports[service]}"

    @property
    def view(self) -> View:
        return View(self.servers.bootstrap_servers, self.servers.opensearch_url, self.get_url("api"), self.client)

    def start_scheduler(self, **environment: str) -> None:
        """Start the scheduler, with the bug that ``CHAOS_BUG`` in ``environment`` names."""
        cluster, port = self.folder / "cluster.yaml", self.ports["scheduler"]
        self.processes.start(
            "scheduler", "tests.chaos.scheduler_with_ledger", "serve", "--cluster", str(cluster),
            "--spool", str(self.spool), "--listen", port, "--insecure-http", **environment,
        )  # fmt: skip
        self.wait_ready("scheduler")

    def start_index(self, name: str = "index", **environment: str) -> None:
        """Start an index writer called ``name``, with the faults or bugs of ``environment``. It may not be ready."""
        self.ports.setdefault(name, find_free_ports(name)[name])
        self.processes.start(
            name, "tests.chaos.worker_with_faults", "index", "--metrics-address", self.ports[name],
            **self.default_environment | environment,
        )  # fmt: skip

    def start_api(self) -> None:
        self.processes.start("api", "api", "serve", "--listen", self.ports["api"])
        self.wait_ready("api")

    def start_worker(self, name: str = "worker", **environment: str) -> None:
        """Start a worker called ``name``, with the faults or bugs of ``environment``. It may not be ready yet."""
        self.ports.setdefault(name, find_free_ports(name)[name])
        self.processes.start(
            name, "tests.chaos.worker_with_faults", "worker",
            "--metrics-address", self.ports[name], "--instance-id", name,
            **self.default_environment | environment,
        )  # fmt: skip

    def wait_until_index_reads(self, name: str = "index") -> None:
        """Return when the index writer has read some records: Kafka has given it partitions."""
        counted = re.compile(r'^schedulerlog_index_records_total\{[^}]*outcome="taken"[^}]*\} [1-9]', re.MULTILINE)
        self.wait_ready(name)
        url = f"{self.get_url(name)}/metrics"
        _wait(lambda: counted.search(self.client.get(url).text) is not None, True, f"the first records of {name}")

    def wait_ready(self, service: str) -> None:
        self.processes.wait_ready(service, f"{self.get_url(service)}/readyz")

    def ends(self, name: str, timeout_seconds: float = 60) -> bool:
        """Tell whether the service ends by itself within the time. Then it may be started again."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if self.processes.release_if_ended(name):
                return True
            time.sleep(0.05)
        return False

    def move_spool(self, folder: Path) -> None:
        """Stop the scheduler, and continue with its spool in another folder."""
        self.processes.stop("scheduler")
        self.spool = Path(shutil.move(self.spool, folder))
        self.start_scheduler()

    def wait_until_spool_is(self, state: str) -> None:
        """Return when the scheduler, which answers, says so of its spool."""
        url = f"{self.get_url('scheduler')}/readyz"
        _wait(lambda: state in self.client.get(url).json()["spool"], True, f"a spool that is {state}")

    @contextmanager
    def stopped(self, pid: int) -> Iterator[None]:
        """The process is stopped (SIGSTOP) within this context."""
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @contextmanager
    def read_only_indices(self) -> Iterator[None]:
        self._block_writes(is_blocked=True)
        try:
            yield
        finally:
            self._block_writes(is_blocked=False)

    def _block_writes(self, *, is_blocked: bool) -> None:
        url = f"{self.servers.opensearch_url}/schedulerlog-*/_settings"
        self.client.put(url, json={"index.blocks.write": is_blocked}).raise_for_status()

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """OpenSearch looks at its disk every ten seconds, and more must be free than there is."""
        self._want_free("1000tb")
        try:
            self._wait_until_flooded(is_flooded=True)
            yield
            self._want_free("1b")
            self._wait_until_flooded(is_flooded=False)
        finally:
            self._set_cluster(dict.fromkeys(_DISK_SETTINGS))

    def _want_free(self, size: str) -> None:
        marks = dict.fromkeys(_WATERMARKS, size)
        self._set_cluster({_DISK_SETTINGS[0]: True, _DISK_SETTINGS[1]: "10s"} | marks)

    def _set_cluster(self, settings: dict[str, Any]) -> None:
        url = f"{self.servers.opensearch_url}/_cluster/settings"
        self.client.put(url, json={"transient": settings}).raise_for_status()

    def _wait_until_flooded(self, *, is_flooded: bool) -> None:
        url = f"{self.servers.opensearch_url}/schedulerlog-*/_settings/{_FLOODED}"
        _wait(
            lambda: _FLOODED.rpartition(".")[2] in self.client.get(url).text,
            is_flooded,
            "OpenSearch's look at its disk",
        )
        # It forbids new indices as well, and where nobody waits for the end of that, for good.
        settings = f"{self.servers.opensearch_url}/_cluster/settings?flat_settings=true"
        _wait(
            lambda: '"cluster.blocks.create_index":"true"' in self.client.get(settings).text,
            is_flooded,
            "OpenSearch's look at its disk",
        )

    def wait_answered(self, load: Load) -> None:
        """Return when the API knows the latest of every pod that was answered until now."""
        latest = {answer.pod: answer.status for answer in list(load.answers) if answer.pod not in load.unanswered}
        _wait(
            lambda: all(self.view.get_status(load.namespace, pod) == status for pod, status in latest.items()),
            True,
            "the API's answers about all pods",
        )

    def wait_visible(self, namespace: str, count: int) -> None:
        """Return when the index has so many attempts of a namespace."""
        _wait(lambda: self.view.count_attempts(namespace) >= count, True, f"{count} attempts in the index")

    def is_frozen(self, name: str) -> bool:
        """Tell whether the service is stopped (SIGSTOP)."""
        status = Path(f"/proc/{self.processes.get_pid(name)}/stat").read_text()
        return status.rpartition(")")[2].split()[0] == "T"

    def thaw(self, name: str) -> None:
        os.kill(self.processes.get_pid(name), signal.SIGCONT)

    @contextmanager
    def no_more_shards(self) -> Iterator[None]:
        """OpenSearch has as many shards as it may have within this context, and no index can be made."""
        # A limit of no shards is not allowed.
        self.client.put(f"{self.servers.opensearch_url}/filler", json={"settings": _NO_REPLICA}).raise_for_status()
        self._set_cluster({_MAX_SHARDS: 1})
        try:
            yield
        finally:
            self._set_cluster({_MAX_SHARDS: None})
            self.client.delete(f"{self.servers.opensearch_url}/filler").raise_for_status()

    def delete_indices(self) -> None:
        """Delete all of our indices at once, as an operator does by mistake."""
        self.client.delete(f"{self.servers.opensearch_url}/schedulerlog-*").raise_for_status()

    def wait_until_index_waits(self, cause: str) -> None:
        """Return when the index writer says that it waits for the index, with this cause."""
        url = f"{self.get_url('index')}/readyz"
        _wait(lambda: cause in self.client.get(url).text, True, f"an index writer that waits: {cause}")

    def wait_until_loss_is_noticed(self) -> None:
        """Return when the index writer has noticed indices that were deleted."""
        counted = re.compile(r"^schedulerlog_index_lost_indices_total [1-9]", re.MULTILINE)
        url = f"{self.get_url('index')}/metrics"
        _wait(lambda: counted.search(self.client.get(url).text) is not None, True, "the loss of indices")

    def read_topics_again(self) -> None:
        """Set the group of the index writers, of which none runs, back to the beginning of its topics."""
        asyncio.run(self._read_topics_again())

    async def _read_topics_again(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.servers.bootstrap_servers, group_id=INDEX_WRITERS, enable_auto_commit=False
        )
        async with consumer:
            partitions = [TopicPartition(topic.name, number) for topic in INDEXED for number in range(topic.partitions)]
            consumer.assign(partitions)
            await consumer.commit(await consumer.beginning_offsets(partitions))

    def send(self, record: EncodedRecord, **options: Any) -> None:
        """Send a record to the topic of decisions, as a defective producer would."""
        asyncio.run(self._send(record, options))

    async def _send(self, record: EncodedRecord, options: dict[str, Any]) -> None:
        servers = self.servers.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=servers, max_request_size=_LARGEST, **options) as producer:
            await producer.send_and_wait(DECISIONS.name, record.value, key=record.key, headers=record.headers)


@dataclass
class OneProcessGround(Ground):
    """Worker, index writer and API are one process, ``schedulerlog all``, which has the names of all of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ports["worker"] = self.ports["index"]

    def start_worker(self, name: str = "worker", **environment: str) -> None:
        self.start_index(name, **environment)

    def start_index(self, name: str = "worker", **environment: str) -> None:
        """Start the process unless it runs already, under whichever of its names."""
        if self.processes.is_running("worker"):
            return
        self.processes.start(
            "worker", "tests.chaos.worker_with_faults", "all", "--no-provision",
            "--metrics-address", self.ports["worker"], "--listen", self.ports["api"],
            **self.default_environment | environment,
        )  # fmt: skip

    def start_api(self) -> None:
        """Start nothing: it is a part of the process."""

    def wait_ready(self, service: str) -> None:
        name = "scheduler" if service == "scheduler" else "worker"
        self.processes.wait_ready(name, f"{self.get_url(name)}/readyz")


def _wait(look: Callable[[], bool], wanted: bool, what: str, timeout_seconds: float = 90) -> None:
    deadline = time.monotonic() + timeout_seconds
    while look() is not wanted:
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_seconds:.0f} s for {what}")
        time.sleep(0.2)


def a_large_node(name: str) -> dict[str, Any]:
    """A node with devices for all pods: those whose bind failed are not tried again, and keep their devices."""
    return a_node(name, [a_device(f"GPU-{name}-{index}", index=index, count=10_000) for index in range(8)])


@contextmanager
def ground(folder: Path, servers: embedded.Backends, kind: type[Ground] = Ground) -> Iterator[Ground]:
    """Topics, templates, the scheduler and the API; each run starts its own workers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.yaml").write_text(
        yaml.safe_dump_all([a_large_node(f"node{number}") for number in range(1, NODES + 1)])
    )
    environment = servers.environment | PACE | {"CHAOS_LEDGER": str(folder / "ledger.jsonl")}
    with ForkedProcesses(folder / "logs", environment) as processes, httpx.Client(timeout=30) as client:
        processes.run("provision", "pipeline", "provision")
        running = kind(folder, servers, processes, client)
        running.start_scheduler()
        running.start_index()
        running.start_api()
        running.wait_ready("index")
        yield running
