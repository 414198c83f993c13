"""``list --pending`` on a real cluster where every system of queues and groups holds something.

The controllers of Kueue, Volcano, KAI, YuniKorn, Koordinator, slurm-bridge and the autoscaler do not run here: their
objects, conditions and events are written as recordings of them have them. What Kubernetes itself does is real: Jobs
that are suspended or refused by a quota, gates, a claim that does not exist, and kube-scheduler.
"""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, Final

import httpx
import pytest
from typer.testing import CliRunner

from cli.terminal.kubectl import app
from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.folder import link_kubectl
from schemas.json_types import Json
from tests.support.control_plane.objects import MERGE_PATCH, create, created_namespace, created_nodes
from tests.support.control_plane.queue_systems import (
    CLUSTER_QUEUES,
    KAI_GROUPS,
    LOCAL_QUEUES,
    SIBLING_GROUPS,
    VOLCANO_GROUPS,
    VOLCANO_JOBS,
    VOLCANO_QUEUES,
    WORKLOADS,
    create_custom,
    created_kinds,
)
from tests.support.harness.api_process import Served, serving
from tests.support.harness.forked import Forked
from tests.support.harness.pipeline_process import pipeline
from tests.support.reused_backends import reused_backends
from tests.support.waiting import eventually, until

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
EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    "job/suspended": ("KueueWaitsForQuota", "queue"),
    "gated": ("KueueWaitsForQuota", "queue"),
    "job/group": ("GroupNotEnqueued", "queue"),
    "kai": ("QueueFull", "queue"),
    "koordinator": ("QueueFull", "queue"),
    "yunikorn": ("QueueFull", "queue"),
    "siblings": ("GangIncomplete", "gate"),
    "copied": ("SchedulingGated", "gate"),
    "claim": ("DeviceClaimMissing", "gate"),
    "slurm": ("SlurmWaits", "bind"),
    "large": ("ResourceNeverEnough", "nodes"),
    "rejected": ("KubeletPluginFailed", "start"),
    "job/refused": ("QuotaExceeded", "queue"),
}
"""Obstacle and layer by the name in the list."""


def to_stamp() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


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
        self.add_pod("copied", schedulingGates=[{"name": "data.example.org/copied"}])
        self.add_pod("claim", resourceClaims=[{"name": "gpu", "resourceClaimName": "missing"}])
        resources = {"requests": {"cpu": "64"}}
        self.add_pod("large", containers=[{"name": "c", "image": "i", "resources": resources}])

    def add_rejected(self) -> None:
        """Create a pod that its kubelet refused: it has failed before a container ran.

        kwok would run the pods of every node that exists, and Kubernetes deletes pods of other nodes after 40 seconds:
        then it is made again.
        """
        if self.client.get(f"{self.root}/pods/rejected").status_code == httpx.codes.OK:
            return
        create(self.client, f"{self.root}/pods", a_pod("rejected", nodeName="unmanaged"))
        message = "Pod was rejected: Allocate failed due to requested number of devices unavailable for x.org/gpu"
        self.patch_status("rejected", {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message})

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


@pytest.fixture(scope="module")
def systems(control_plane: ControlPlane) -> Iterator[Systems]:
    """A namespace in which every system holds something."""
    control_plane.start_scheduler({})
    name = f"layers-{uuid.uuid4().hex[:8]}"
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    node = {"metadata": {"name": f"{name}-0"}, "status": {"allocatable": amounts, "capacity": amounts}}
    with ExitStack() as stack:
        stack.enter_context(created_kinds(control_plane))
        stack.enter_context(created_namespace(control_plane, name))
        stack.enter_context(created_nodes(control_plane, [node]))
        client = stack.enter_context(control_plane.open_client())
        systems = Systems(client, name)
        systems.add_kueue()
        systems.add_volcano()
        systems.add_others()
        eventually(lambda: "FailedScheduling" in systems.list_reasons(), "kube-scheduler has refused no pod")
        systems.add_rejected()
        systems.add_refused_job()
        yield systems


@pytest.fixture(scope="module")
def items(control_plane: ControlPlane, systems: Systems, tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    """The answer of the command, without any service of ours on the cluster."""
    folder = tmp_path_factory.mktemp("layers")
    link_kubectl(folder, control_plane.binary)
    environment = {"KUBECONFIG": str(control_plane.kubeconfig), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = CliRunner().invoke(app, ["list", "--pending", "-A", "-o", "json"], env=environment)
    assert done.exit_code == 0, done.output
    answer: Json = json.loads(done.stdout)
    return [item for item in answer["items"] if item["namespace"] == systems.namespace]


def test_everything_that_waits_is_listed_once_and_nothing_else(items: list[Json]) -> None:
    assert sorted(item["name"] for item in items) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_each_system_has_its_obstacle_and_its_layer(items: list[Json], name: str) -> None:
    (item,) = [item for item in items if item["name"] == name]
    code, layer = EXPECTED[name]
    assert item["obstacle"], item
    assert (item["obstacle"]["code"], item["layer"]) == (code, layer), item["obstacle"]["sentence"]["en"]


@pytest.fixture(scope="module")
def listed(
    control_plane: ControlPlane, systems: Systems, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Json]]:
    """The answer of the API, from what ``ingest kube-events`` publishes: once all subjects are in it."""
    folder = tmp_path_factory.mktemp("listed")
    with (
        reused_backends.taken() as servers,
        pipeline(folder, servers) as running,
        serving(servers.bootstrap_servers, servers.opensearch_url) as api,
        (folder / "kube-events.log").open("ab") as log,
    ):
        running.start_all()
        watching = Forked(
            "ingest", "kube-events", "--kubeconfig", str(control_plane.kubeconfig), "--kafka",
            servers.bootstrap_servers, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            until(lambda: list_pending(api, systems.namespace), has_settled)
            systems.add_rejected()
            yield until(lambda: list_pending(api, systems.namespace), lambda items: len(items) == len(EXPECTED))
        finally:
            watching.terminate()
            watching.wait(timeout=120)


def list_pending(api: Served, namespace: str) -> list[Json]:
    answer = api.get("/api/v1/pending", namespace=namespace, group_by="pod", limit="100")
    items: list[Json] = answer.json().get("items", []) if answer.status_code == httpx.codes.OK else []
    return items


def has_settled(items: list[Json]) -> bool:
    """Tell whether every subject that stays is listed with what its system has written by now."""
    codes = {item["name"]: item["obstacle"] and item["obstacle"]["code"] for item in items}
    expected = {name: code for name, (code, _) in EXPECTED.items() if name != "rejected"}
    return codes.items() >= expected.items()


def test_the_api_lists_what_the_cluster_itself_lists(listed: list[Json], items: list[Json]) -> None:
    assert sorted(item["name"] for item in listed) == sorted(item["name"] for item in items)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_api_lists_each_subject_with_its_obstacle_and_layer(listed: list[Json], name: str) -> None:
    (item,) = [item for item in listed if item["name"] == name]
    code, layer = EXPECTED[name]
    assert (item["obstacle"]["code"], item["layer"]) == (code, layer), item["obstacle"]


@pytest.mark.parametrize("name", [name for name in EXPECTED if "/" in name])
def test_workloads_without_pods_have_the_same_obstacle_over_the_api(
    listed: list[Json], items: list[Json], name: str
) -> None:
    (over_api,), (direct,) = ([item for item in answer if item["name"] == name] for answer in (listed, items))
    assert over_api["obstacle"] == direct["obstacle"]
    assert (over_api["queue"], over_api["devices"]) == (direct["queue"], direct["devices"])
