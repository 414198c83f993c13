"""The lists and watches of an API server with a large generated cluster: ``python -m dev.bench.watched_cluster PORT``.

A real API server of this size takes an hour to fill. Pods are as large as on clusters, with environments and managed
fields; some of everything changes each second.
"""

import asyncio
import itertools
import sys
from collections.abc import Iterator
from typing import Any, Final

import orjson
from aiohttp import web

PODS: Final = 10_000
NODES: Final = 1_000
WORKLOADS: Final = 2_000
SUSPENDED: Final = 500
"""Jobs that Kueue holds; the others have pods."""
_STAMP: Final = "2026-11-26T12:00:00Z"
_BATCH: Final = "/apis/batch/v1/jobs"
_KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
_EVENTS: Final = "/apis/events.k8s.io/v1/events"
_CHANGES: Final = {"/api/v1/pods": 15, "/api/v1/nodes": 4, f"{_KUEUE}/workloads": 2, _BATCH: 2, _EVENTS: 1}
"""Changes a second by path."""
_FULL: Final = "couldn't assign flavors: insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed"
_GROUPS: Final = {"batch": "v1", "apps": "v1", "kueue.x-k8s.io": "v1beta2"}
_REFUSED: Final = f"0/{NODES} nodes are available: {NODES} Insufficient nvidia.com/gpu."

UNWATCHED: Final = "/bench/unwatched"
"""Path of the number of lists that nobody watches yet."""

Object = dict[str, Any]


def _build_metadata(name: str, number: int, **more: Any) -> Object:
    fields: Object = {f"f:field{index}": {"f:value": {}} for index in range(12)}
    managed = [{"manager": "kube-controller-manager", "operation": "Update", "time": _STAMP, "fieldsV1": fields}]
    return {
        "name": name, "namespace": f"team-{number % 50}", "uid": f"uid-{name}", "resourceVersion": str(number + 1),
        "creationTimestamp": _STAMP, "labels": {"app": name, "kueue.x-k8s.io/queue-name": "night"},
        "managedFields": managed, **more,
    }  # fmt: skip


def _build_container(number: int) -> Object:
    environment = [{"name": f"SETTING_{index}", "value": f"value-{number}-{index}"} for index in range(15)]
    amounts = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    return {
        "name": "main", "image": "registry.example/team/train:1.2.3", "env": environment,
        "resources": {"requests": amounts, "limits": amounts}, "command": ["python", "-m", "train"],
    }  # fmt: skip


def _build_pod(number: int) -> Object:
    job = SUSPENDED + number % (WORKLOADS - SUSPENDED)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{job}", "uid": f"uid-job-{job}", "controller": True}
    metadata = _build_metadata(f"pod-{number}", number, ownerReferences=[owner])
    metadata["namespace"] = f"team-{job % 50}"
    is_placed = number % 10 != 0
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _STAMP}
    refused = condition | {"status": "False", "reason": "Unschedulable", "message": _REFUSED}
    status: Object = {
        "phase": "Running" if is_placed else "Pending",
        "conditions": [condition if is_placed else refused],
    }
    spec: Object = {"schedulerName": "default-scheduler", "containers": [_build_container(number)]}
    if is_placed:
        spec["nodeName"] = f"node-{number % NODES}"
        running = {"name": "main", "ready": True, "state": {"running": {"startedAt": _STAMP}}, "restartCount": 0}
        status["containerStatuses"] = [running]
    return {"metadata": metadata, "spec": spec, "status": status}


def _build_node(number: int) -> Object:
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    conditions = [
        {"type": kind, "status": status, "lastTransitionTime": _STAMP, "lastHeartbeatTime": _STAMP}
        for kind, status in (("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"))
    ]
    images = [{"names": [f"registry.example/image-{index}:1"], "sizeBytes": 1} for index in range(50)]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions, "images": images}
    metadata = _build_metadata(f"node-{number}", number)
    del metadata["namespace"]
    return {"metadata": metadata, "spec": {}, "status": status}


def _build_job(number: int) -> Object:
    is_held = number < SUSPENDED
    template = {"metadata": {}, "spec": {"containers": [_build_container(number)], "restartPolicy": "Never"}}
    spec = {"parallelism": 5, "suspend": is_held, "template": template}
    status = {} if is_held else {"active": 5}
    return {"metadata": _build_metadata(f"job-{number}", number), "spec": spec, "status": status}


def _build_workload(number: int) -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number}", "controller": True}
    template = {"metadata": {}, "spec": {"containers": [_build_container(number)]}}
    condition = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": _STAMP, "reason": "QuotaReserved"}
    held = condition | {"status": "False", "reason": "WaitingForQuota", "message": _FULL}
    return {
        "metadata": _build_metadata(f"job-job-{number}", number, ownerReferences=[owner]),
        "spec": {"queueName": "night", "podSets": [{"name": "main", "count": 5, "template": template}]},
        "status": {"conditions": [held if number < SUSPENDED else condition]},
    }


def _build_event(number: int) -> Object:
    name = f"pod-{number * 10 % PODS}"
    regarding = {"kind": "Pod", "namespace": f"team-{number % 50}", "name": name, "uid": f"uid-{name}"}
    return {
        "metadata": _build_metadata(f"event-{number}", number), "regarding": regarding, "reason": "FailedScheduling",
        "note": _REFUSED, "type": "Warning", "eventTime": "2026-11-26T12:00:00.000000Z",
        "reportingController": "default-scheduler",
    }  # fmt: skip


def _build_tables() -> dict[str, list[Object]]:
    """Build the objects by the path of their list."""
    local = [{"metadata": _build_metadata("night", number), "spec": {"clusterQueue": "all"}} for number in range(50)]
    return {
        "/api/v1/pods": [_build_pod(number) for number in range(PODS)],
        "/api/v1/nodes": [_build_node(number) for number in range(NODES)],
        _EVENTS: [_build_event(number) for number in range(WORKLOADS)],
        _BATCH: [_build_job(number) for number in range(WORKLOADS)],
        f"{_KUEUE}/workloads": [_build_workload(number) for number in range(WORKLOADS)],
        f"{_KUEUE}/localqueues": local,
        f"{_KUEUE}/clusterqueues": [{"metadata": {"name": "all", "uid": "q", "resourceVersion": "1"}, "spec": {}}],
        f"{_KUEUE}/resourceflavors": [],
        "/apis/batch/v1/cronjobs": [],
        **{f"/apis/apps/v1/{plural}": [] for plural in ("replicasets", "statefulsets", "daemonsets")},
    }


class WatchedCluster:
    """Answers lists by pages, and watches with changes."""

    def __init__(self) -> None:
        self._tables = _build_tables()
        self._versions = itertools.count(1_000_000)
        self._watched: set[str] = set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request."""
        if request.path == UNWATCHED:
            return _to_json({"lists": len(self._tables.keys() - self._watched)})
        if request.path == "/apis":
            return _to_json({"groups": list(_iterate_groups())})
        table = self._tables.get(request.path)
        if table is None:
            return _to_json({"kind": "Status", "code": 404, "reason": "NotFound", "message": request.path}, 404)
        if request.query.get("watch"):
            return await self._watch(request, table)
        begin, limit = int(request.query.get("continue", "0")), int(request.query.get("limit", str(len(table))))
        more = {"continue": str(begin + limit)} if begin + limit < len(table) else {}
        return _to_json({"metadata": {"resourceVersion": "900000"} | more, "items": table[begin : begin + limit]})

    async def _watch(self, request: web.Request, table: list[Object]) -> web.StreamResponse:
        self._watched.add(request.path)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        changes, numbers = _CHANGES.get(request.path, 0), itertools.count()
        while changes:
            await asyncio.sleep(1 / changes)
            entry = table[next(numbers) * 7 % len(table)]
            entry["metadata"]["resourceVersion"] = str(next(self._versions))
            entry["metadata"]["managedFields"][0]["time"] = _STAMP
            await response.write(orjson.dumps({"type": "MODIFIED", "object": entry}) + b"\n")
        while True:
            await asyncio.sleep(60)
            version = str(next(self._versions))
            bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}
            await response.write(orjson.dumps(bookmark) + b"\n")


def _iterate_groups() -> Iterator[Object]:
    for name, version in _GROUPS.items():
        listed = {"groupVersion": f"{name}/{version}", "version": version}
        yield {"name": name, "versions": [listed], "preferredVersion": listed}


def _to_json(value: Object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def main() -> None:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", WatchedCluster().answer)
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=None)


if __name__ == "__main__":
    main()
