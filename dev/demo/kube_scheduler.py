"""Simulates kube-scheduler: asks the extender to filter the nodes, then to bind the pod, and writes its events."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from dev.demo.api_server import SimulatedApiServer

Pod = dict[str, Any]
SCHEDULER: Final = "hami-scheduler"
"""Scheduler name that the webhook writes into pods that name no scheduler and request devices."""


def read_pod(path: Path) -> Pod:
    pod: Pod = yaml.safe_load(path.read_text())
    return pod


class SimulatedKubeScheduler:
    """Sends the requests that kube-scheduler sends to an extender at ``url``; ``events`` takes what it writes."""

    def __init__(self, url: str, events: SimulatedApiServer | None = None) -> None:
        self._url = url
        self._events = events

    def schedule_once(self, pod: Pod, nodes: list[str]) -> str | None:
        """Filter, then bind to the node that the extender chose: the node, or None if the pod was not bound."""
        node = self.filter(pod, nodes)
        if node is None:
            return None
        if error := self.bind(pod, node):
            self._write(pod, "FailedScheduling", f"running Bind plugin: {error}")
            return None
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self._write(pod, "Scheduled", f"Successfully assigned {name} to {node}")
        return node

    def filter(self, pod: Pod, nodes: list[str]) -> str | None:
        """Filter the nodes and return the node that the extender chose; None if it refused all."""
        answer = self._post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": nodes})
        if names := answer.get("NodeNames"):
            return str(names[0])
        reasons = Counter((answer.get("FailedNodes") or {}).values())
        counts = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        self._write(pod, "FailedScheduling", f"0/{len(nodes)} nodes are available: {counts}.")
        return None

    def _write(self, pod: Pod, reason: str, note: str) -> None:
        if self._events:
            self._events.write_event(pod, pod["spec"].get("schedulerName", SCHEDULER), reason, note)

    def bind(self, pod: Pod, node: str) -> str:
        """Bind the pod and return the error of the bind; empty if it succeeded."""
        metadata = pod["metadata"]
        arguments = {
            "PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"], "Node": node
        }  # fmt: skip
        return str(self._post("/bind", arguments)["Error"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = httpx.post(self._url + path, json=body, timeout=30)
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        return answer
