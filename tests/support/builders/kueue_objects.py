"""Builders of Kueue's objects around a pod that it holds."""

from typing import Any

from schemas.json_types import Json

GATE = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
OWNER = {"kind": "Pod", "name": "job-0", "controller": True}


def an_object(kind: str, name: str, namespace: str = "lab", **fields: Any) -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, **fields}


def a_workload(reason: str, message: str, *, status: str = "False", kind: str = "QuotaReserved", **spec: Any) -> Json:
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    workload = an_object("Workload", "w-1", spec={"queueName": "night", **spec}, status={"conditions": [condition]})
    workload["metadata"]["ownerReferences"] = [OWNER]
    return workload


def list_queues(used: str = "20", **spec: Any) -> list[Json]:
    amounts = [{"name": "nvidia.com/gpu", "nominalQuota": "24"}]
    groups = [{"flavors": [{"name": "big", "resources": amounts}]}]
    usage = [{"name": "big", "resources": [{"name": "nvidia.com/gpu", "total": used}]}]
    return [
        an_object("LocalQueue", "night", spec={"clusterQueue": "batch"}),
        an_object("ClusterQueue", "batch", "", spec={"resourceGroups": groups, **spec},
                  status={"pendingWorkloads": 3, "flavorsUsage": usage}),
    ]  # fmt: skip
