"""Refusals of Volcano and KAI on a real API server: each node and device has its reason, from the event to the page.

Neither controller runs here. Their groups, conditions and events are written with the words that both were recorded to
write; nodes, pods and all that is judged on them are the API server's own.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.codec.records import decode
from schemas.events import NodeObserved
from schemas.json_types import Json
from schemas.topics import NODES
from tests.support.chromium import chromium
from tests.support.control_plane.objects import MERGE_PATCH, create, created_namespace, created_nodes
from tests.support.control_plane.queue_systems import (
    KAI_GROUPS,
    VOLCANO_GROUPS,
    VOLCANO_JOBS,
    VOLCANO_QUEUES,
    create_custom,
    created_kinds,
)
from tests.support.harness.api_process import Served, serving
from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.harness.watched_cluster import watching_cluster
from tests.support.reused_backends import reused_backends
from tests.support.visitor import Visitor
from tests.support.waiting import eventually, until

GPU: Final = "nvidia.com/gpu"
RESERVATIONS: Final = "kai-resource-reservation"
MEMORY_LABEL: Final = "nvidia.com/gpu.memory"


@dataclass(frozen=True, slots=True)
class World:
    """Services of ours, and the control plane that they look at."""

    cluster: ControlPlane
    running: Pipeline
    api: Served
    folder: Path

    def diagnose(self, pod: str) -> Json:
        namespace, name = pod.split("/")
        answer = self.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}/diagnosis")
        body: Json = answer.json()
        return body if answer.status_code == httpx.codes.OK else {}

    def read_attempt(self, pod: str) -> Json:
        """Read the pod's latest attempt when its verdicts have arrived."""

        def get() -> Json:
            namespace, name = pod.split("/")
            answer = self.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog", detail="full")
            body: Json = answer.json()
            return body if answer.status_code == httpx.codes.OK else {}

        return until(get, lambda answer: bool(answer.get("detail", {}).get("reconstruction")))

    def read_page(self, pod: str) -> str:
        with chromium() as browser, browser.new_context(locale="en") as context:
            visitor = Visitor(context.new_page(), str(self.api.client.base_url).rstrip("/"))
            visitor.open(f"/ui/pods/{pod}")
            return visitor.page.locator("main").inner_text()

    @contextmanager
    def watching(self, node: str) -> Iterator[None]:
        """Watch the cluster by ``ingest kube-events``; returns when a node was observed."""
        with watching_cluster(self.cluster.kubeconfig, self.running.servers.bootstrap_servers, self.folder):
            eventually(lambda: self.has_observed(node), "nothing watches the cluster")
            yield

    def has_observed(self, node: str) -> bool:
        events = (decode(record.value, record.headers) for record in self.running.read_topic(NODES.name))
        return any(isinstance(event, NodeObserved) and event.node == node for event in events)


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("recorded")
    kubeconfig = str(control_plane.kubeconfig)
    with (
        reused_backends.taken() as servers,
        pipeline(folder, servers) as running,
        created_kinds(control_plane, (KAI_GROUPS, VOLCANO_GROUPS, VOLCANO_JOBS, VOLCANO_QUEUES)),
        serving(servers.bootstrap_servers, servers.opensearch_url, SCHEDULERLOG_KUBECONFIG=kubeconfig) as api,
    ):
        running.start_all()
        yield World(control_plane, running, api, folder)


def to_stamp() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def a_node(name: str, gpus: int, labels: Json | None = None) -> Json:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110", GPU: str(gpus)}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"metadata": {"name": name, "labels": labels or {}}, "status": status}


def a_pod(name: str, scheduler: str, gpus: int = 0, node: str = "", **metadata: Any) -> Json:
    amounts = {"cpu": "1", "memory": "1Gi"} | ({GPU: str(gpus)} if gpus else {})
    resources = {"requests": amounts, "limits": {GPU: str(gpus)} if gpus else {}}
    spec: Json = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "i", "resources": resources}]}
    return {"metadata": {"name": name, **metadata}, "spec": spec | ({"nodeName": node} if node else {})}


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, and the writes of a controller in it."""

    client: httpx.Client
    name: str

    @property
    def root(self) -> str:
        return f"/api/v1/namespaces/{self.name}"

    def refuse(self, pod: str, message: str) -> None:
        """Write a refusal into the condition of a pod."""
        condition = {
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            "lastTransitionTime": to_stamp(),
        }  # fmt: skip
        body = json.dumps({"status": {"conditions": [condition]}})
        path = f"{self.root}/pods/{pod}/status"
        self.client.patch(path, content=body, headers=MERGE_PATCH).raise_for_status()

    def add_event(self, subject: Json, reason: str, message: str, reporter: str, kind: str = "Warning") -> None:
        metadata = subject["metadata"]
        regarding = {
            "kind": subject["kind"], "apiVersion": subject["apiVersion"], "namespace": self.name,
            "name": metadata["name"], "uid": metadata["uid"],
        }  # fmt: skip
        event = {
            "metadata": {"name": f"{metadata['name']}.{uuid.uuid4().hex[:12]}"}, "involvedObject": regarding,
            "reason": reason, "message": message, "type": kind, "source": {"component": reporter},
            "reportingComponent": reporter, "firstTimestamp": to_stamp(), "lastTimestamp": to_stamp(), "count": 1,
        }  # fmt: skip
        create(self.client, f"{self.root}/events", event)


def list_reasons(attempt: Json) -> dict[str, str]:
    return {
        node["name"]: container["reason"]
        for node in attempt["filter"]["nodes"]
        for container in node["containers"]
        if container["status"] == "failed"
    }


def test_a_gang_of_volcano_has_a_reason_for_each_node(world: World, namespace: str) -> None:
    """Volcano was recorded with these words: seven of eight workers fit, and one GPU is held by another pod."""
    nodes = [a_node("volcano-0", 4), a_node("volcano-1", 4)]
    with (
        created_nodes(world.cluster, nodes),
        world.cluster.open_client() as client,
        world.watching("volcano-1"),
    ):
        cluster = Namespace(client, namespace)
        create(client, f"{cluster.root}/pods", a_pod("note-0", "default-scheduler", 1, "volcano-0"))
        create_workers(cluster)
        attempt = world.read_attempt(f"{namespace}/train-a-worker-7")
        # The API's lists of the group and of its pods are seconds behind at most.
        until(
            lambda: world.diagnose(f"{namespace}/train-a-worker-7"),
            lambda answer: answer["obstacle"]["code"] == "GangTooLarge",
        )
        answers = {name: world.diagnose(f"{namespace}/train-a-worker-{name}") for name in (0, 7)}
        page = world.read_page(f"{namespace}/train-a-worker-7")
    assert attempt["detail"]["reconstruction"]["agreement"] == "equal"
    assert list_reasons(attempt) == dict.fromkeys(("volcano-0", "volcano-1"), "Insufficient nvidia.com/gpu")
    assert answers[0]["obstacle"]["code"] == "GangHasNode"
    sentence = answers[7]["sentence"]["en"]
    # As Volcano counts them: 7 are schedulable, and the eighth is not.
    assert "7 of 8 members fit now" in sentence
    assert "train-a-worker-7 is the first that does not" in sentence
    assert answers[7]["obstacle"]["code"] == "GangTooLarge"
    assert answers[7]["comparison"]["agreement"] == "equal"
    assert sentence in page
    assert "volcano-0" in page


def create_workers(cluster: Namespace) -> None:
    """Create a Job of eight workers with its group, as Volcano's controllers do, and its scheduler's refusals."""
    queue = f"research-{cluster.name}"
    create_custom(cluster.client, VOLCANO_QUEUES, "", {"metadata": {"name": queue}, "spec": {"weight": 1}})
    job = create_custom(
        cluster.client,
        VOLCANO_JOBS,
        cluster.name,
        {"metadata": {"name": "train-a"}, "spec": {"minAvailable": 8, "queue": queue, "schedulerName": "volcano"}},
    )
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": "Job",
        "name": "train-a",
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    words = (
        "pod group is not ready, 8 Pending, 8 minAvailable; Pending: 1 Unschedulable, 7 Schedulable. Origin reason is "
        "train-a-worker-7: 0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
    )
    condition = {
        "type": "Unschedulable", "status": "True", "reason": "NotEnoughResources",
        "message": f"1/8 tasks in gang unschedulable: {words}", "lastTransitionTime": to_stamp(), "transitionID": "1",
    }  # fmt: skip
    name = f"train-a-{job['metadata']['uid']}"
    group = create_custom(
        cluster.client,
        VOLCANO_GROUPS,
        cluster.name,
        {
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"minMember": 8, "queue": queue},
            "status": {"phase": "Inqueue", "conditions": [condition]},
        },
    )
    for number in range(8):
        worker = f"train-a-worker-{number}"
        labels = {"volcano.sh/job-name": "train-a", "volcano.sh/queue-name": queue, "volcano.sh/task-spec": "worker"}
        annotations = {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": "worker"}
        pod = a_pod(worker, "volcano", 1, labels=labels, annotations=annotations, ownerReferences=[owner])
        created = create(cluster.client, f"{cluster.root}/pods", pod)
        possible = f"Pod {cluster.name}/{worker} can possibly be assigned to volcano-0, once minAvailable is satisfied"
        message = possible if number < 7 else "0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
        cluster.add_event(created, "FailedScheduling", message, "volcano")
    cluster.add_event(group, "Unschedulable", f"8/8 tasks in gang unschedulable: {words}", "volcano")


def test_parts_of_devices_that_kai_gives_have_a_reason_for_each_device(world: World, namespace: str) -> None:
    """KAI v0.13 and v0.17 were recorded with these words: two devices, of each of which another pod has a half."""
    node = a_node("kai-0", 2, {MEMORY_LABEL: "40960"})
    with (
        created_nodes(world.cluster, [node]),
        created_namespace(world.cluster, RESERVATIONS),
        world.cluster.open_client() as client,
        world.watching("kai-0"),
    ):
        cluster = Namespace(client, namespace)
        for number in range(2):
            group = {"runai-gpu-group": f"grp-{number}"}
            half = a_pod(
                f"busy-{number}", "kai-scheduler", 0, "kai-0", labels=group, annotations={"gpu-fraction": "0.5"}
            )
            create(client, f"{cluster.root}/pods", half)
            reservation = a_pod(f"reservation-{number}", "kai-scheduler", 1, "kai-0", labels=group)
            create(client, f"/api/v1/namespaces/{RESERVATIONS}/pods", reservation)
        create_refused_share(cluster)
        attempt = world.read_attempt(f"{namespace}/infer-0")
        # Until the API has read the nodes and pods of now, it answers by the records.
        answer = until(
            lambda: world.diagnose(f"{namespace}/infer-0"),
            lambda read: read["obstacle"]["code"] == "KaiShareInUse",
        )
        page = world.read_page(f"{namespace}/infer-0")
    assert attempt["detail"]["reconstruction"]["agreement"] == "equal"
    assert list_reasons(attempt) == {"kai-0": "2/2 CardInsufficientMemory"}
    assert answer["obstacle"]["code"] == "KaiShareInUse"
    assert answer["comparison"]["agreement"] == "equal"
    assert answer["sentence"]["en"] in page
    assert "1 refused 2/2 CardInsufficientMemory kai-0" in page


def create_refused_share(cluster: Namespace) -> None:
    """Create a pod that asks for seven tenths of a device, with its group, and KAI's refusals of both."""
    words = "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs."
    of_pod = f"Resources were not found for pod {cluster.name}/infer-0 due to: {words}"
    annotations = {"gpu-fraction": "0.7", "pod-group-name": "pg-infer"}
    pod = create(cluster.client, f"{cluster.root}/pods", a_pod("infer-0", "kai-scheduler", annotations=annotations))
    condition = {
        "type": "UnschedulableOnNodePool", "status": "True", "reason": "Unschedulable", "nodePool": "default",
        "message": f"PodSchedulingErrors: {of_pod}.", "reasons": [{"reason": "PodSchedulingErrors", "message": of_pod}],
        "transitionID": "1", "lastTransitionTime": to_stamp(),
    }  # fmt: skip
    group = create_custom(
        cluster.client,
        KAI_GROUPS,
        cluster.name,
        {
            "metadata": {"name": "pg-infer"},
            "spec": {"minMember": 1, "queue": "team-a"},
            "status": {"schedulingConditions": [condition]},
        },
    )
    cluster.refuse("infer-0", words)
    cluster.add_event(pod, "Unschedulable", words, "kai-scheduler")
    cluster.add_event(group, "Unschedulable", f"PodSchedulingErrors: {of_pod}.", "kai-scheduler", "Normal")
