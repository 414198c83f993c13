"""An API server of few objects, as the direct mode reads it through kubectl."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cli.client.kubectl import parse_kubectl_problem
from cli.client.problems import Problem

POD = {
    "metadata": {"name": "train-0", "namespace": "ml", "creationTimestamp": "2026-01-01T10:00:00Z"},
    "spec": {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}}}],
    },
    "status": {"phase": "Pending"},
}
NODES = [
    {"metadata": {"name": f"n{index}"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}
    for index in range(3)
]
JOB = {
    "metadata": {"name": "train", "namespace": "ml", "creationTimestamp": "2026-01-01T10:00:00Z"},
    "spec": {"parallelism": 1, "template": {"spec": POD["spec"]}},
}
OWNED = {
    **POD,
    "metadata": {
        "name": "train-0",
        "namespace": "ml",
        "creationTimestamp": "2026-01-01T10:00:00Z",
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}],
    },
}
GROUPS = [{"name": "batch", "preferredVersion": {"version": "v1"}, "versions": [{"version": "v1"}]}]
OBJECTS: dict[str, Any] = {
    "/apis": {"groups": GROUPS},
    "/apis/batch/v1/namespaces/ml/jobs/train": JOB,
    "/apis/batch/v1/namespaces/ml/jobs": [JOB],
    "/api/v1/namespaces/ml/pods/train-0": OWNED,
    "/api/v1/nodes": NODES,
    "/api/v1/pods": [OWNED],
    "/api/v1/namespaces/ml/pods": [OWNED],
}
DIAGNOSIS = "/namespaces/ml/pods/train-0/diagnosis"


class SmallCluster:
    """An API server of few objects, whose user may not read some paths. Lists come in pages of two."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.paths: list[str] = []

    def fetch(self, address: str) -> bytes | Problem:
        url = urlsplit(address)
        self.paths.append(url.path)
        if url.path in self.refused:
            return parse_kubectl_problem('Error from server (Forbidden): nodes is forbidden: User "u" cannot list')
        resource = OBJECTS.get(url.path)
        if resource is None:
            return parse_kubectl_problem(f'Error from server (NotFound): "{url.path}" not found')
        if not isinstance(resource, list):
            return json.dumps(resource).encode()
        start = int(parse_qs(url.query).get("continue", ["0"])[0])
        more = str(start + 2) if start + 2 < len(resource) else ""
        return json.dumps({"items": resource[start : start + 2], "metadata": {"continue": more}}).encode()
