"""Simulates kube-scheduler: asks the extender to filter the nodes, then to bind the pod."""

from pathlib import Path
from typing import Any

import httpx
import yaml

Pod = dict[str, Any]


def read_pod(path: Path) -> Pod:
    pod: Pod = yaml.safe_load(path.read_text())
    return pod


class SimulatedKubeScheduler:
    """Sends the requests that kube-scheduler sends to an extender at ``url``."""

    def __init__(self, url: str) -> None:
        self._url = url

    def schedule_once(self, pod: Pod, nodes: list[str]) -> str | None:
        """Filter, then bind to the node that the extender chose: the node, or None if the pod was not bound."""
        node = self.filter(pod, nodes)
        return node if node and not self.bind(pod, node) else None

    def filter(self, pod: Pod, nodes: list[str]) -> str | None:
        """The node that the extender chose; None if it refused all."""
        answer = self._post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": nodes})
        names = answer.get("NodeNames") or []
        return str(names[0]) if names else None

    def bind(self, pod: Pod, node: str) -> str:
        """The error of the bind; empty if the pod was bound."""
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
