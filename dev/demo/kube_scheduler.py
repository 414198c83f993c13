"""Simulates kube-scheduler: asks the extender to filter the nodes, then to bind the pod, and writes its events.

The scheduler service keeps what it writes into pods of a cluster file to itself. So the pod as an API server would have
it comes from its answers and from its metrics of devices, which have HAMi's names.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from dev.demo.api_server import SimulatedApiServer
from engine.hami.annotations import ASSIGNED_NODE, BIND_PHASE, DEVICES_ALLOCATED, PHASE_SUCCESS

Pod = dict[str, Any]
SCHEDULER: Final = "hami-scheduler"
"""Scheduler name that the webhook writes into pods that name no scheduler and request devices."""
MEMORY: Final = "hami_vgpu_memory_allocated_bytes"
CORES: Final = "hami_vgpu_core_allocated_ratio"


def read_pod(path: Path) -> Pod:
    pod: Pod = yaml.safe_load(path.read_text())
    return pod


class SimulatedKubeScheduler:
    """Sends the requests that kube-scheduler sends to an extender at ``url``; ``api_server`` takes pods and events."""

    def __init__(self, url: str, api_server: SimulatedApiServer | None = None, hami_metrics_url: str = "") -> None:
        self._url = url
        self._api_server = api_server
        self._hami_metrics_url = hami_metrics_url

    def schedule_once(self, pod: Pod, nodes: list[str]) -> str | None:
        """Filter, then bind to the node that the extender chose: the node, or None if the pod was not bound."""
        self._put(pod)
        node = self.filter(pod, nodes)
        if node is None:
            return None
        if error := self.bind(pod, node):
            self._write(pod, "FailedScheduling", f"running Bind plugin: {error}")
            return None
        self._put(pod, node)
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
        if self._api_server:
            self._api_server.write_event(pod, pod["spec"].get("schedulerName", SCHEDULER), reason, note)

    def _put(self, pod: Pod, node: str = "") -> None:
        """Put the pod into the API server: on its node, with its devices, or pending."""
        if not self._api_server:
            return
        pod["metadata"]["creationTimestamp"] = self._api_server.find_creation(pod["metadata"]["uid"])
        body: Pod = json.loads(json.dumps(pod))
        body["status"] = {"phase": "Pending"}
        if node:
            body["spec"]["nodeName"], body["status"]["phase"] = node, "Running"
            held = {ASSIGNED_NODE: node, BIND_PHASE: PHASE_SUCCESS, DEVICES_ALLOCATED: self._read_allocation(pod)}
            body["metadata"]["annotations"] = {**body["metadata"].get("annotations", {}), **held}
        self._api_server.put_object(body)

    def _read_allocation(self, pod: Pod) -> str:
        """Read the devices that the pod holds, in the form of HAMi's annotation."""
        amounts: dict[str, dict[tuple[int, str], int]] = {MEMORY: {}, CORES: {}}
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        for family in text_string_to_metric_families(httpx.get(self._hami_metrics_url, timeout=30).text):
            for sample in family.samples if family.name in amounts else ():
                labels = sample.labels
                if (labels["namespace"], labels["pod"]) == key:
                    amounts[family.name][int(labels["container_index"]), labels["device_uuid"]] = int(sample.value)
        rows: dict[int, str] = defaultdict(str)
        for (container, uuid), memory in amounts[MEMORY].items():
            rows[container] += f"{uuid},NVIDIA,{memory // 2**20},{amounts[CORES][container, uuid]}:"
        return "".join(f"{rows[container]};" for container in range(len(pod["spec"]["containers"])))

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
