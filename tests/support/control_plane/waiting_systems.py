"""A namespace in which every system of queues and groups holds something, for tests of lists and alerts.

The controllers of Kueue, Volcano, KAI, YuniKorn, Koordinator, slurm-bridge and the autoscalers do not run: their
objects, conditions and events are written as recordings and sources of them have them.
"""

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from schemas.json_types import Json
from tests.support.builders.divisible_devices import OF_KOORDINATOR, OF_VOLCANO, a_device
from tests.support.control_plane.objects import MERGE_PATCH, create
from tests.support.control_plane.queue_systems import (
    CLUSTER_QUEUES,
    DEVICES,
    KAI_GROUPS,
    LOCAL_QUEUES,
    SIBLING_GROUPS,
    VOLCANO_GROUPS,
    VOLCANO_JOBS,
    VOLCANO_QUEUES,
    WORKLOADS,
    create_custom,
)
from tests.support.waiting import eventually

CONTAINERS: Final = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
KUEUE_LABELS: Final = {"kueue.x-k8s.io/queue-name": "night"}
FULL: Final = (
    "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor standard, 4 more needed"
)
KAI: Final = (
    "vision quota has reached the allowable limit of GPUs. Limit is 4 GPUs, currently 4 GPUs allocated and workload "
    "requested 2 GPUs"
)
KOORDINATOR: Final = (
    "0/1 nodes are available: Insufficient quotas, quotaName: vision, runtime: {cpu: 8}, used: {cpu: 8}, "
    "pod's request: {cpu: 1}, exceedDimensions: [cpu]"
)
SIBLINGS: Final = (
    "0/1 nodes are available: cannot find enough sibling pods, current pods number: 1, minMember of group: 4"
)
YUNIKORN: Final = (
    "Request 'u-1' does not fit in queue 'root.vision' (requested map[pods:1 vcore:8000], available map[vcore:2000])"
)
REJECTED: Final[Mapping[str, tuple[str, str]]] = {
    "rejected": (
        "UnexpectedAdmissionError",
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for x.org/gpu",
    ),
    "out-of-gpu": (
        "OutOfx.org/gpu",
        "Pod was rejected: Node didn't have enough resource: x.org/gpu, requested: 2, used: 7, capacity: 8",
    ),
    "evicted": (
        "Evicted",
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. Container c was using "
            "9Gi, request is 1Gi, has larger consumption of memory. "
        ),
    ),
}
"""Reasons and messages of pods that their kubelet refused or evicted."""
GANG: Final = (
    "gangGroup [{0}/ring] basic check: memberGangs [{0}/ring] child pod not collect enough, current gang: {0}/ring, "
    "podName: {0}/koordinator-gang"
)
UNDETERMINED: Final = "pod group is not ready, 1 Pending, 4 minAvailable; Pending: 1 Undetermined"
NOT_READY: Final = "Job is not ready for scheduling. Waiting for 4 pods, currently 1 exist, 0 are gated"
VGPU: Final = "0/1 nodes are unavailable: 1 hami-vgpuDeviceSharing error."
OF_NODE: Final = {
    **OF_KOORDINATOR, **OF_VOLCANO, "cpu": "4", "memory": "8Gi", "pods": "110", "koordinator.sh/gpu-memory": "160Gi",
}  # fmt: skip
REGISTERED: Final = {
    "volcano.sh/node-vgpu-register": ":".join(f"GPU-{part},10,32768,NVIDIA-Tesla V100,true,hami-core" for part in "ab")
}


def to_stamp() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def ask(limits: Json) -> list[Json]:
    """Build the only container of a pod, which asks for extended resources."""
    return [{"name": "c", "image": "i", "resources": {"limits": limits, "requests": limits}}]


def a_pod(name: str, *, labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": CONTAINERS, **spec}}


def a_job(name: str, **spec: Any) -> Json:
    labels = KUEUE_LABELS if spec.get("suspend") else {}
    template = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"template": template, **spec}}


def a_condition(kind: str, reason: str, message: str, status: str = "False") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": to_stamp()}


class Systems:
    """Objects and words of the systems in one namespace."""

    def __init__(self, client: httpx.Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.root = f"/api/v1/namespaces/{namespace}"

    def add_pod(self, name: str, message: str = "", **more: Any) -> Json:
        """Create a pod; with the words of its scheduler in its condition."""
        pod = create(self.client, f"{self.root}/pods", a_pod(name, **more))
        if message:
            self.patch_status(name, {"conditions": [a_condition("PodScheduled", "Unschedulable", message)]})
        return pod

    def patch_status(self, name: str, status: Json) -> None:
        path = f"{self.root}/pods/{name}/status"
        self.client.patch(path, content=json.dumps({"status": status}), headers=MERGE_PATCH).raise_for_status()

    def add_event(self, kind: str, name: str, reason: str, message: str, reporter: str) -> None:
        subject = {"kind": kind, "namespace": self.namespace, "name": name}
        event = {
            "metadata": {"name": f"{name}.{uuid.uuid4().hex[:8]}"}, "involvedObject": subject, "reason": reason,
            "message": message, "type": "Normal", "source": {"component": reporter},
            "firstTimestamp": to_stamp(), "lastTimestamp": to_stamp(),
        }  # fmt: skip
        create(self.client, f"{self.root}/events", event)

    def add_kueue(self) -> None:
        """Create a suspended Job and a gated pod that wait for the quota of one queue."""
        job = create(self.client, f"/apis/batch/v1/namespaces/{self.namespace}/jobs", a_job("suspended", suspend=True))
        gate = [{"name": "kueue.x-k8s.io/admission"}]
        pod = self.add_pod("gated", labels=KUEUE_LABELS, schedulingGates=gate)
        for version, kind, owner in (("batch/v1", "Job", job), ("v1", "Pod", pod)):
            metadata = owner["metadata"]
            reference = {"apiVersion": version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}
            workload = {
                "metadata": {"name": f"w-{metadata['name']}", "ownerReferences": [reference]},
                "spec": {"queueName": "night", "podSets": [{"name": "main", "count": 1}]},
                "status": {"conditions": [a_condition("QuotaReserved", "WaitingForQuota", FULL)]},
            }
            create_custom(self.client, WORKLOADS, self.namespace, workload)
        queue = f"cluster-{self.namespace}"
        local = {"metadata": {"name": "night"}, "spec": {"clusterQueue": queue}}
        create_custom(self.client, LOCAL_QUEUES, self.namespace, local)
        create_custom(self.client, CLUSTER_QUEUES, "", {"metadata": {"name": queue}, "spec": {}})

    def add_volcano(self) -> None:
        """Create a Job of Volcano whose group is not let into its queue, so that no pods are made."""
        queue = f"queue-{self.namespace}"
        create_custom(self.client, VOLCANO_QUEUES, "", {"metadata": {"name": queue}, "spec": {"weight": 1}})
        task = {"name": "w", "replicas": 2, "template": {"spec": {"containers": CONTAINERS}}}
        spec = {"minAvailable": 2, "queue": queue, "tasks": [task]}
        job = create_custom(self.client, VOLCANO_JOBS, self.namespace, {"metadata": {"name": "group"}, "spec": spec})
        reference = {"apiVersion": job["apiVersion"], "kind": "Job", "name": "group", "uid": job["metadata"]["uid"]}
        group = {
            "metadata": {"name": "group-1", "ownerReferences": [reference]},
            "spec": {"minMember": 2, "queue": queue}, "status": {"phase": "Pending"},
        }  # fmt: skip
        create_custom(self.client, VOLCANO_GROUPS, self.namespace, group)
        ring = {"metadata": {"name": "ring-v"}, "spec": {"minMember": 4, "queue": queue}}
        ring["status"] = {"phase": "Inqueue"}
        create_custom(self.client, VOLCANO_GROUPS, self.namespace, ring)
        marks = {"scheduling.k8s.io/group-name": "ring-v"}
        self.add_pod("undetermined", UNDETERMINED, schedulerName="volcano", annotations=marks)
        limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "40960"}
        self.add_pod("vgpu", VGPU, schedulerName="volcano", containers=ask(limits))
        words = "queue resource quota insufficient: insufficient nvidia.com/gpu"
        self.add_event("PodGroup", "group-1", "Unschedulable", words, "volcano")

    def add_others(self) -> None:
        """Create pods with the words of schedulers that are not on the cluster, and those that Kubernetes holds."""
        group = {"metadata": {"name": "vision-1"}, "spec": {"minMember": 1, "queue": "vision"}}
        create_custom(self.client, KAI_GROUPS, self.namespace, group)
        self.add_pod("kai", KAI, schedulerName="kai-scheduler", annotations={"pod-group-name": "vision-1"})
        self.add_pod("koordinator", KOORDINATOR, schedulerName="koord-scheduler")
        self.add_pod("yunikorn", schedulerName="yunikorn")
        self.add_event("Pod", "yunikorn", "Informational", YUNIKORN, "yunikorn")
        create_custom(
            self.client, SIBLING_GROUPS, self.namespace, {"metadata": {"name": "ring"}, "spec": {"minMember": 4}}
        )
        labels = {"scheduling.x-k8s.io/pod-group": "ring"}
        self.add_pod("siblings", SIBLINGS, schedulerName="scheduler-plugins-scheduler", labels=labels)
        labels = {"scheduler.slinky.slurm.net/slurm-jobid": "88"}
        words = "0/1 nodes are available: no nodes assigned to job."
        self.add_pod("slurm", words, schedulerName="slurm-bridge-scheduler", labels=labels)
        self.add_devices()
        self.add_pod("copied", schedulingGates=[{"name": "data.example.org/copied"}])
        self.add_pod("claim", resourceClaims=[{"name": "gpu", "resourceClaimName": "missing"}])
        self.add_pod("volume", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}])
        self.add_pod("share", containers=ask({"nvidia.com/gpumem": "3000"}))
        for name in ("large", "scaling", "karpenter"):
            self.add_pod(name, containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}])
        words = "pod didn't trigger scale-up: 1 max node group size reached"
        self.add_event("Pod", "scaling", "NotTriggerScaleUp", words, "cluster-autoscaler")
        words = 'Failed to schedule pod, incompatible with nodepool "gpu", no instance type has enough resources'
        self.add_event("Pod", "karpenter", "FailedScheduling", words, "karpenter")

    def add_devices(self) -> None:
        """Create gangs of KAI and Koordinator without all members, and a pod that no device of Koordinator is for."""
        group = {"metadata": {"name": "vision-2"}, "spec": {"minMember": 4, "queue": "vision"}}
        create_custom(self.client, KAI_GROUPS, self.namespace, group)
        self.add_pod("kai-group", schedulerName="kai-scheduler", annotations={"pod-group-name": "vision-2"})
        self.add_event("PodGroup", "vision-2", "NotReady", NOT_READY, "kai-scheduler")
        words = f"0/1 nodes are available: {GANG.format(self.namespace)}."
        self.add_pod("koordinator-gang", words, schedulerName="koord-scheduler")
        device = a_device(f"{self.namespace}-0")
        create_custom(self.client, DEVICES, "", {"metadata": {"name": f"{self.namespace}-0"}, "spec": device["spec"]})
        limits = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "100Gi"}
        words = "0/1 nodes are available: 1 Insufficient gpu devices."
        self.add_pod("koordinator-device", words, schedulerName="koord-scheduler", containers=ask(limits))

    def add_rejected(self) -> None:
        """Create pods that their kubelet refused or evicted: they have failed before a container ran.

        kwok would run the pods of every node that exists, and Kubernetes deletes pods of other nodes after 40 seconds:
        then they are made again.
        """
        for name, (reason, message) in REJECTED.items():
            if self.client.get(f"{self.root}/pods/{name}").status_code != httpx.codes.OK:
                create(self.client, f"{self.root}/pods", a_pod(name, nodeName="unmanaged"))
                self.patch_status(name, {"phase": "Failed", "reason": reason, "message": message})

    def add_refused_job(self) -> None:
        """Create a Job whose pods the namespace's quota refuses: it is one for pods with a deadline."""
        quota = {"metadata": {"name": "no-more"}, "spec": {"hard": {"pods": "0"}, "scopes": ["Terminating"]}}
        create(self.client, f"{self.root}/resourcequotas", quota)
        eventually(lambda: self.is_quota_counted("no-more"), "the quota is not counted")
        template = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never", "activeDeadlineSeconds": 3600}}
        create(self.client, f"/apis/batch/v1/namespaces/{self.namespace}/jobs", a_job("refused", template=template))
        eventually(lambda: "FailedCreate" in self.list_reasons(), "the Job's pod was not refused")

    def is_quota_counted(self, name: str) -> bool:
        return "used" in self.client.get(f"{self.root}/resourcequotas/{name}").json().get("status", {})

    def list_reasons(self) -> set[str]:
        return {event["reason"] for event in self.client.get(f"{self.root}/events").json()["items"]}
