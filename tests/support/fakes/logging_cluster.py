"""An API server with one scheduler, whose log can be read."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cli.client.kubectl import parse_kubectl_problem
from cli.client.problems import Problem
from schemas.json_types import Json
from tests.support.builders.hami_lines import write_failure, write_request, write_start, write_unfit

POD: Json = {
    "metadata": {"name": "trainer", "namespace": "ml", "creationTimestamp": "2026-01-01T10:00:00Z"},
    "spec": {
        "schedulerName": "hami-scheduler",
        "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20480"}}}],
    },
    "status": {"phase": "Pending"},
}
DEVICES = [{"id": "GPU-1", "count": 10, "devmem": 40000, "devcore": 100, "type": "NVIDIA-A100", "health": True}]
NODES: list[Json] = [
    {
        "metadata": {
            "name": name,
            "annotations": {
                "hami.io/node-nvidia-register": json.dumps([{**DEVICES[0], "id": f"GPU-{name}"}]),
                "hami.io/node-handshake": "Reported 2026-01-01 11:59:50",
            },
        },
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "10"}},
    }
    for name in ("n0", "n1")
]
SCHEDULER: Json = {
    "metadata": {"name": "hami-scheduler-5d4", "namespace": "kube-system"},
    "spec": {"containers": [{"name": "kube-scheduler"}, {"name": "vgpu-scheduler-extender"}]},
    "status": {"phase": "Running"},
}
LOG = b"\n".join(
    [
        write_start(),
        write_request(1),
        write_unfit("n0", "CardInsufficientMemory"),
        write_unfit("n1", "CardInsufficientMemory"),
        write_failure(2),
    ]
)
LOG_PATH = "/api/v1/namespaces/kube-system/pods/hami-scheduler-5d4/log"


class LoggingCluster:
    """An API server with one scheduler, whose log has the text; None refuses it."""

    def __init__(self, log: bytes | None, pods: list[Json]) -> None:
        self.log, self.pods = log, pods
        self.options: dict[str, list[str]] = {}

    def fetch(self, address: str) -> bytes | Problem:
        url = urlsplit(address)
        if url.path == LOG_PATH:
            self.options = parse_qs(url.query)
            if self.log is None:
                return parse_kubectl_problem(
                    'Error from server (Forbidden): pods/log is forbidden: User "u" cannot get'
                )
            return self.log
        objects: dict[str, Any] = {
            "/api/v1/namespaces/ml/pods/trainer": POD,
            "/api/v1/nodes": {"items": NODES},
            "/api/v1/pods": {"items": self.pods},
        }
        if url.path in objects:
            return json.dumps(objects[url.path]).encode()
        return parse_kubectl_problem('Error from server (NotFound): "x" not found')
