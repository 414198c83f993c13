"""``python -m ingest`` as a process, and what is in the index behind it."""

import subprocess
from collections.abc import Callable
from typing import Any, Self

import httpx

from dev.demo.processes import find_free_ports
from runtime.kafka.lease import WAITING
from tests.support.harness.forked import Forked
from tests.support.harness.pipeline_process import Pipeline


def run_ingest(running: Pipeline, *arguments: str) -> Forked:
    kafka = running.servers.bootstrap_servers
    return Forked("ingest", *arguments, "--kafka", kafka, stderr=subprocess.PIPE, text=True)


def read(running: Pipeline, *arguments: str) -> str:
    """Return what it says when it has read to the end."""
    process = run_ingest(running, *arguments)
    errors: str = process.communicate(timeout=120)[1]
    assert process.returncode == 0, errors
    return errors


def wait_until_taken(running: Pipeline) -> None:
    """Wait until the worker has done all that lies on the topic."""
    running.settle()


def get_versions(running: Pipeline, query: dict[str, Any]) -> dict[str, tuple[int, Any]]:
    """Return the version and content of every document in any index.

    Of a finding the content alone: reported again, it replaces itself, because it may have other numbers then.
    """
    url = f"{running.servers.opensearch_url}/schedulerlog-*"
    httpx.post(f"{url}/_refresh", timeout=30)
    body = {"size": 10_000, "version": True, "query": query}
    hits = httpx.post(f"{url}/_search", json=body, timeout=30).json()["hits"]["hits"]
    return {
        f"{hit['_index']}/{hit['_id']}": (0 if "-findings-" in hit["_index"] else hit["_version"], hit["_source"])
        for hit in hits
    }


def read_readiness(port: str) -> tuple[int, str]:
    """Read status and text of a process's readiness; 0 while it does not answer."""
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5)
    except httpx.TransportError:
        return 0, ""
    return answer.status_code, answer.text


class Replicas:
    """Two readers of one lease. As a kubelet does, ``read`` starts those again that ended by themselves: a machine
    that stands still for longer than the session moves the lease, and who loses it ends."""

    def __init__(self, start: Callable[[str], Forked]) -> None:
        self._start = start
        self.ports = find_free_ports("first", "second")
        self._processes: dict[str, Forked] = {}

    def __enter__(self) -> Self:
        self._processes = {name: self._start(port) for name, port in self.ports.items()}
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.terminate()
            process.wait(timeout=120)

    def read(self) -> dict[str, tuple[int, str]]:
        """Read the readiness of each."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                self._processes[name] = self._start(self.ports[name])
        return {name: read_readiness(self.ports[name]) for name in self._processes}

    def find_working(self) -> str:
        """Find the one that works while the other one waits for the lease; empty until it is so."""
        answers = self.read()
        ready = [name for name, (status, _) in answers.items() if status == httpx.codes.OK]
        waiting = [name for name, answer in answers.items() if answer == (503, f"{WAITING}\n")]
        return ready[0] if len(ready) == len(waiting) == 1 else ""

    def has_ready(self) -> bool:
        """Tell whether one of them works."""
        return any(status == httpx.codes.OK for status, _ in self.read().values())

    def kill(self, name: str) -> None:
        """Kill this one for good."""
        process = self._processes.pop(name)
        process.kill()
        process.wait(timeout=60)
