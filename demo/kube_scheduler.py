"""kube-scheduler's part: it asks the extender which node, then tells it to bind."""

from pathlib import Path
from typing import Any

import httpx
import yaml

Pod = dict[str, Any]


def read_pod(path: Path) -> Pod:
    pod: Pod = yaml.safe_load(path.read_text())
    return pod


class KubeScheduler:
    def __init__(self, url: str) -> None:
        self._url = url

    def try_once(self, pod: Pod, nodes: list[str]) -> str | None:
        """One attempt: filter, then bind to the node that was chosen. The node, or None when it is not bound."""
        node = self.filter(pod, nodes)
        return node if node and not self.bind(pod, node) else None

    def filter(self, pod: Pod, nodes: list[str]) -> str | None:
        answer = self._post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": nodes})
        names = answer.get("NodeNames") or []
        return str(names[0]) if names else None

    def bind(self, pod: Pod, node: str) -> str:
        """The error of the bind; empty when the pod is bound."""
        about = pod["metadata"]
        asked = {"PodName": about["name"], "PodNamespace": about["namespace"], "PodUID": about["uid"], "Node": node}
        return str(self._post("/bind", asked)["Error"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = httpx.post(self._url + path, json=body, timeout=30)
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        return answer
