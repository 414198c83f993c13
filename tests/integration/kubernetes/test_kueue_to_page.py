"""A pod that Kueue holds and then lets go: from the cluster over events, index and API to its page with the time line.

Kueue's controller does not run: the test writes the Workload's conditions, the event and the removal of the gate as it
does. The gate itself, the pod's states and the refusal by kube-scheduler are real.
"""

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.chromium import chromium
from tests.support.control_plane.objects import MERGE_PATCH, create, created_nodes
from tests.support.control_plane.queue_systems import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    WORKLOADS,
    create_custom,
    created_kinds,
)
from tests.support.harness.api_process import Served
from tests.support.harness.watched_cluster import watched_api
from tests.support.visitor import Visitor
from tests.support.waiting import until

PICTURE: Final = Path("docs/pictures/timeline.png")
TAKES_PICTURE: Final = os.environ.get("SCHEDULERLOG_TEST_PICTURE") == "1"
FULL: Final = "insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed"
AMOUNTS: Final = {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"}
LAYERS_SECONDS: Final = 3.0
"""Time in each layer, long enough to be seen: objects have whole seconds."""


def a_condition(kind: str, reason: str, message: str, status: str) -> Json:
    stamp = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}


class Kueue:
    """Writes what Kueue's controllers write about one pod."""

    def __init__(self, client: httpx.Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.pod_path = f"/api/v1/namespaces/{namespace}/pods/train"

    def hold(self) -> None:
        """Create the queue, and the pod with its gate and its Workload, for which there is no quota."""
        local = {"metadata": {"name": "night"}, "spec": {"clusterQueue": self.namespace}}
        create_custom(self.client, LOCAL_QUEUES, self.namespace, local)
        usage = [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "total": "8"}]}]
        quota = {"name": "nvidia.com/gpu", "nominalQuota": "8"}
        spec = {"resourceGroups": [{"flavors": [{"name": "h100", "resources": [quota]}]}]}
        queue = {"metadata": {"name": self.namespace}, "spec": spec, "status": {"flavorsUsage": usage}}
        create_custom(self.client, CLUSTER_QUEUES, "", queue)
        pod = create(self.client, self.pod_path.rpartition("/")[0], a_gated_pod())
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": pod["metadata"]["uid"]}
        workload = {
            "metadata": {"name": "pod-train", "ownerReferences": [owner]},
            "spec": {"queueName": "night", "podSets": [{"name": "main", "count": 1}]},
            "status": {"conditions": [a_condition("QuotaReserved", "WaitingForQuota", FULL, "False")]},
        }
        create_custom(self.client, WORKLOADS, self.namespace, workload)

    def admit(self) -> None:
        """Give the Workload its quota."""
        conditions = [
            a_condition(kind, kind, f"Quota reserved in ClusterQueue {self.namespace}", "True")
            for kind in ("QuotaReserved", "Admitted")
        ]
        status = {"conditions": conditions, "admission": {"clusterQueue": self.namespace}}
        self._patch(f"{WORKLOADS.build_path(self.namespace)}/pod-train", {"status": status})

    def release(self) -> None:
        """Take the gate away, with the event that Kueue writes."""
        self._patch(self.pod_path, {"spec": {"schedulingGates": None}})
        stamp = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        subject = {"kind": "Pod", "namespace": self.namespace, "name": "train"}
        event = {
            "metadata": {"name": "train.started"}, "involvedObject": subject, "reason": "Started", "type": "Normal",
            "message": f"Admitted by clusterQueue {self.namespace}", "source": {"component": "pod-kueue-controller"},
            "firstTimestamp": stamp, "lastTimestamp": stamp,
        }  # fmt: skip
        create(self.client, f"/api/v1/namespaces/{self.namespace}/events", event)

    def _patch(self, path: str, body: Json) -> None:
        self.client.patch(path, content=json.dumps(body), headers=MERGE_PATCH).raise_for_status()


def a_gated_pod() -> Json:
    resources = {"limits": {"nvidia.com/gpu": "4"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    metadata = {"name": "train", "labels": {"kueue.x-k8s.io/queue-name": "night"}}
    return {"metadata": metadata, "spec": {**spec, "schedulingGates": gates}}


@pytest.fixture
def kueue(control_plane: ControlPlane, namespace: str) -> Iterator[Kueue]:
    control_plane.start_scheduler({})
    node = {"metadata": {"name": f"{namespace}-0"}, "status": {"allocatable": AMOUNTS, "capacity": AMOUNTS}}
    kinds = (WORKLOADS, LOCAL_QUEUES, CLUSTER_QUEUES)
    with (
        created_kinds(control_plane, kinds),
        created_nodes(control_plane, [node]),
        control_plane.open_client() as client,
    ):
        yield Kueue(client, namespace)


def test_a_pod_is_followed_from_its_queue_to_the_scheduler(
    control_plane: ControlPlane, kueue: Kueue, namespace: str, tmp_path: Path
) -> None:
    with watched_api(control_plane.kubeconfig, tmp_path) as api:
        kueue.hold()
        pending = until(lambda: list_pending(api, namespace))
        held = until(lambda: diagnose(api, namespace), lambda answer: answer.get("layer") == "queue")
        pending_page = read_pending_page(api, namespace)
        time.sleep(LAYERS_SECONDS)
        kueue.admit()
        time.sleep(LAYERS_SECONDS)
        kueue.release()
        refused = until(lambda: diagnose(api, namespace), has_all_moments)
        check_page(api, namespace)
    assert [(item["name"], item["layer"]) for item in pending] == [("train", "queue")]
    assert pending_page.count("queue and quota") == 2, "one for the sums by layer, one in the pod's row"
    assert held["obstacle"]["code"] == "KueueWaitsForQuota"
    assert "8 of its 8 are in use" in held["sentence"]["en"]
    assert refused["obstacle"]["code"] == "ResourceNeverEnough"
    moments = [moment["event"] for moment in refused["timeline"]]
    # The API server dates both with whole seconds, which may or may not be the same.
    assert sorted(moments[:2]) == ["created", "queued"]
    assert moments[2:5] == ["quota reserved", "admitted", "released"]
    waits = {wait["layer"]: wait["waited_seconds"] for wait in refused["waits"]}
    assert waits["queue"] >= LAYERS_SECONDS - 1
    assert waits["gate"] >= LAYERS_SECONDS - 1
    assert "nodes" in waits


def list_pending(api: Served, namespace: str) -> list[dict[str, Any]]:
    answer = api.get("/api/v1/pending", namespace=namespace, group_by="pod")
    items: list[dict[str, Any]] = answer.json().get("items", []) if answer.status_code == httpx.codes.OK else []
    return items


def diagnose(api: Served, namespace: str) -> dict[str, Any]:
    answer = api.get(f"/api/v1/namespaces/{namespace}/pods/train/diagnosis")
    body: dict[str, Any] = answer.json()
    return body if answer.status_code == httpx.codes.OK else {}


def has_all_moments(answer: dict[str, Any]) -> bool:
    """Tell whether the answer is one of after the refusal: the API may have read the pod a moment before."""
    moments = {moment["event"] for moment in answer.get("timeline", [])}
    return {"released", "tried"} <= moments and answer["layer"] == "nodes"


def read_pending_page(api: Served, namespace: str) -> str:
    """Read the page of what waits, in the namespace."""
    with chromium() as browser, browser.new_context(locale="en") as context:
        visitor = Visitor(context.new_page(), str(api.client.base_url).rstrip("/"))
        visitor.open(f"/ui/pending?by=pod&namespace={namespace}")
        return visitor.page.locator("main").inner_text()


def check_page(api: Served, namespace: str) -> None:
    """Look at the time line on the pod's page, on a wide and on a narrow screen."""
    with chromium() as browser, browser.new_context(locale="en") as context:
        visitor = Visitor(context.new_page(), str(api.client.base_url).rstrip("/"))
        visitor.open(f"/ui/pods/{namespace}/train")
        for width in (390, 1280):
            visitor.page.set_viewport_size({"width": width, "height": 900})
            table = visitor.page.locator("table.moments")
            assert "admitted by" in table.inner_text()
            box = table.bounding_box()
            assert box
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        if TAKES_PICTURE:
            take_picture(visitor)


def take_picture(visitor: Visitor) -> None:
    """Take the picture of the documents: from the heading of the time line to the end of its table."""
    visitor.page.set_viewport_size({"width": 1100, "height": 1600})
    heading = visitor.page.locator("#timeline").bounding_box()
    table = visitor.page.locator("table.moments").bounding_box()
    assert heading
    assert table
    height = table["y"] + table["height"] - heading["y"] + 16
    clip = {"x": 0.0, "y": heading["y"] - 8, "width": 1100.0, "height": height}
    visitor.page.screenshot(path=PICTURE, clip=clip)  # type: ignore[arg-type]
