"""A scheduler as a process of its own, and Kafka as another program sees it."""

import asyncio
import os
import re
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import httpx
import yaml
from aiokafka import AIOKafkaConsumer

from schemas.json_types import Json
from schemas.topics import DECISIONS
from tests.support.builders.kube_objects import a_container, a_node, a_pod
from tests.support.harness.forked import Forked

NODE_NAMES = [f"node{number}" for number in range(1, 6)]


def write_cluster(path: Path, nodes: Iterable[Json] = ()) -> Path:
    listed = list(nodes) or [a_node(name, annotations={"hami.io/test": str(path)}) for name in NODE_NAMES]
    path.write_text(yaml.safe_dump_all(listed))
    return path


def _get(url: str) -> httpx.Response:
    # Whether a certificate is to be trusted is the business of the tests about certificates.
    return httpx.get(url, timeout=30, verify=_TRUSTING if url.startswith("https") else True)


_TRUSTING = ssl._create_unverified_context()  # noqa: S323


class SchedulerProcess:
    """`schedulerlog scheduler serve` on a free port; ends with its context, whatever happens."""

    def __init__(self, folder: Path, *flags: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.spool, self.log = folder, folder / "spool", folder / "scheduler.log"
        self.cluster = folder / "cluster.yaml"
        if not self.cluster.exists():
            write_cluster(self.cluster)
        self._flags = flags
        self._process: subprocess.Popen[Any] | None = None
        self.url = ""
        self._client = httpx.Client(timeout=30)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process and self._process.poll() is None:
            self.kill()
        self._client.close()
        self._client = httpx.Client(timeout=30)

    def start(self) -> None:
        """Return when it is ready."""
        flags = ["--cluster", str(self.cluster), "--spool", str(self.spool), "--listen", "0", *self._flags]
        flags += [] if "--cert-file" in flags else ["--insecure-http"]
        log_start = self.log.stat().st_size if self.log.exists() else 0
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        with self.log.open("ab") as output:
            self._process = self._spawn(flags, output, environment)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            log = self.log.read_bytes()[log_start:].decode()
            # The whole line: an address that is written in part is another one.
            match = re.search(r'answering kube-scheduler on ([^\s"]+)"?.*\n', log)
            if match and self._is_ready(match[1]):
                self.url = match[1]
                return
            assert self._process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        raise TimeoutError(self.log.read_text())

    def _spawn(self, flags: Sequence[str], output: IO[bytes], environment: dict[str, str]) -> subprocess.Popen[Any]:
        return Forked("scheduler", "serve", *flags, stdout=output, stderr=output, env=environment)

    def _is_ready(self, address: str) -> bool:
        try:
            return _get(f"{address}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def kill(self) -> None:
        """Kill it, as a crash would."""
        assert self._process
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """Stop it, as an operator would, and return the exit code."""
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)

    def sum_metric(self, name: str) -> float:
        lines = _get(f"{self.url}/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def wait_until(self, is_so: Callable[[], bool], timeout_seconds: float = 40) -> None:
        """Return when `is_so`; fails with the log after the time."""
        deadline = time.monotonic() + timeout_seconds
        while not is_so():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def wait_until_sent(self) -> None:
        """Return when Kafka has everything that the spool had."""
        self.wait_until(lambda: not self.sum_metric("schedulerlog_scheduler_spool_bytes"))

    def filter(self, pod: Json, nodes: Sequence[str] = NODE_NAMES, timeout: float = 10) -> Json:
        return self._post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}, timeout)

    def bind(self, pod: Json, node: str) -> Json:
        metadata = pod["metadata"]
        request = {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"],
            "Node": node,
        }
        return self._post("/bind", request, 10)

    def _post(self, path: str, body: Json, timeout: float) -> Json:
        response = self._client.post(f"{self.url}{path}", json=body, timeout=timeout)
        response.raise_for_status()
        answer: Json = response.json()
        return answer


def a_refused_pod(name: str, namespace: str) -> Json:
    """Asks for more devices than any node has."""
    return a_pod(name, [a_container(gpus=9)], namespace=namespace, uid=f"uid-{namespace}-{name}")


@dataclass(frozen=True, slots=True)
class Read:
    """One record as a consumer gets it."""

    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]

    def get_header(self, name: str) -> str:
        return next(value.decode() for key, value in self.headers if key == name)


async def read_topic(bootstrap_servers: str, topic: str, prefix: str = "") -> list[Read]:
    """Read every record of the topic whose key begins with `prefix`, in the order of each partition."""
    matching: list[Read] = []
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", group_id=None
    ) as consumer:
        ends: dict[Any, int] = await consumer.end_offsets(consumer.assignment())
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                matching += [Read(r.partition, r.offset, r.key, r.value, list(r.headers)) for r in records]
    return [read for read in matching if read.key.decode().startswith(prefix)]


async def read_until(bootstrap_servers: str, prefix: str, ids: set[str], timeout_seconds: float = 30) -> list[Read]:
    """Read the decisions whose key begins with `prefix`, as soon as all `ids` are among them or the time is up."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        decisions = await read_topic(bootstrap_servers, DECISIONS.name, prefix)
        if ids <= {read.get_header("ce_id") for read in decisions} or time.monotonic() > deadline:
            return decisions
        await asyncio.sleep(0.2)
