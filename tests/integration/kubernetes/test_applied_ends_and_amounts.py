"""Ends of holders, labels, amounts of pods and quotas, changed as suggested: the real kube-scheduler places the pod."""

import json
import time
from collections.abc import Callable, Iterator, Sequence

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.applied_changes import (
    DRA,
    DRIVER,
    Case,
    Scene,
    a_cpu_node,
    add_class,
    apply_suggestion,
    end_holder,
    find_node,
    opened_scene,
    suggest,
)
from tests.support.control_plane.objects import MERGE_PATCH, create
from tests.support.control_plane.plain_scheduler import a_pod
from tests.support.control_plane.scheduled_pods import await_result, bind_claim
from tests.support.waiting import eventually

PORT: Json = {"containerPort": 80, "hostPort": 8080}
LISTENS: Json = {"containers": [{"name": "main", "image": "none", "ports": [PORT]}]}
CLAIMED: Json = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "waits"}]}
MOUNTED: Json = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
POD_LEVEL: Json = {"resources": {"requests": {"cpu": "6"}}}
CPU = "requests.cpu"


def hold_port(scene: Scene) -> None:
    scene.add_nodes(a_cpu_node(f"{scene.namespace}-a"))
    create(scene.client, scene.pods, a_pod("holder", nodeName=f"{scene.namespace}-a", **LISTENS))


def hold_volume(scene: Scene) -> None:
    """Mount a volume that only one pod may have."""
    scene.add_nodes(a_cpu_node(f"{scene.namespace}-a"))
    name = f"{scene.namespace}-data"
    shared = {"accessModes": ["ReadWriteOncePod"], "storageClassName": ""}
    source = {"csi": {"driver": "csi.example.com", "volumeHandle": name}}
    scene.add_volume({"metadata": {"name": name}, "spec": {"capacity": {"storage": "1Gi"}, **shared, **source}})
    claims = f"/api/v1/namespaces/{scene.namespace}/persistentvolumeclaims"
    spec = {**shared, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
    scene.add(claims, {"metadata": {"name": "data"}, "spec": spec})
    bind_claim(scene.client, f"{claims}/data", name)
    create(scene.client, scene.pods, a_pod("holder", nodeName=f"{scene.namespace}-a", **MOUNTED))


def hold_device(scene: Scene) -> None:
    """Let kube-scheduler give the only device of a node to a claim of another pod."""
    node = f"{scene.namespace}-a"
    scene.add_nodes(a_cpu_node(node))
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    scene.add(f"{DRA}/resourceslices", {"metadata": {"name": node}, "spec": spec})
    add_class(scene, scene.namespace)
    request = {"name": "gpu", "exactly": {"deviceClassName": scene.namespace}}
    for name in ("holder", "waits"):
        claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        scene.add(f"{DRA}/namespaces/{scene.namespace}/resourceclaims", claim)
    references = [{"name": "gpu", "resourceClaimName": "holder"}]
    create(
        scene.client, scene.pods, a_pod("holder", resourceClaims=references, nodeSelector={"scene": scene.namespace})
    )
    assert await_result(scene.client, f"{scene.pods}/holder").node == node


def end_claim_holder(scene: Scene, pod: Json, edit: Json) -> None:
    """End the pod, and give its devices back as the controller of claims does, which is not started here."""
    end_holder(scene, pod, edit)
    path = f"{DRA}/namespaces/{scene.namespace}/resourceclaims/{edit['before'].rpartition(' ')[2]}/status"
    change = json.dumps({"status": {"allocation": None, "reservedFor": None}})
    scene.client.patch(path, content=change, headers=MERGE_PATCH).raise_for_status()


def label_node(scene: Scene) -> None:
    labels = {"gpu": "NVIDIA-A100-SXM4"}
    metadata = {"name": f"{scene.namespace}-a", "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels}
    scene.add_nodes(a_cpu_node(f"{scene.namespace}-a", metadata=metadata))


def correct_selector(scene: Scene, pod: Json, edit: Json) -> None:
    key, _, value = edit["after"].partition("=")
    selector = pod["spec"]["nodeSelector"] | {key: value}
    scene.replace_pod(pod | {"spec": pod["spec"] | {"nodeSelector": selector}})


def add_small_node(scene: Scene) -> None:
    scene.add_nodes(a_cpu_node(f"{scene.namespace}-a"))


def lower_pod_level(scene: Scene, pod: Json, edit: Json) -> None:
    assert edit["where"] == "spec.resources: cpu"
    resources = {"requests": {"cpu": edit["after"]}}
    scene.replace_pod(pod | {"spec": pod["spec"] | {"resources": resources}})


CASES: Sequence[Case] = (
    Case("use", hold_port, end_holder, LISTENS, name="end of a port's holder"),
    Case("use", hold_volume, end_holder, MOUNTED, name="end of a volume's holder"),
    Case("use", hold_device, end_claim_holder, CLAIMED, name="end of a device's holder"),
    Case("selector", label_node, correct_selector, {"nodeSelector": {"gpu": "NVIDIA-A100"}}, name="corrected label"),
    Case(
        "request", add_small_node, lower_pod_level, {"resources": {"requests": {"cpu": "6"}}}, name="pod-level request"
    ),
)


@pytest.fixture
def scene(control_plane: ControlPlane) -> Iterator[Scene]:
    with opened_scene(control_plane) as opened:
        yield opened


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_after_the_change_kube_scheduler_places_the_pod_where_the_suggestion_says(
    scene: Scene, case: Case, figure: Callable[[str], None]
) -> None:
    figure(apply_suggestion(scene, case))


def test_a_pod_that_a_quota_refuses_is_created_and_placed_after_the_quota_is_raised(
    scene: Scene, figure: Callable[[str], None]
) -> None:
    add_small_node(scene)
    quotas = f"/api/v1/namespaces/{scene.namespace}/resourcequotas"
    create(scene.client, quotas, {"metadata": {"name": "team"}, "spec": {"hard": {CPU: "1"}}})
    path = f"{quotas}/team"
    eventually(lambda: scene.client.get(path).json()["status"].get("used"), "the quota is not counted")
    pod = a_pod("waits", requests={"cpu": "2"}, nodeSelector={"scene": scene.namespace})
    refusal = scene.client.post(scene.pods, json=pod)
    assert (refusal.status_code, "exceeded quota: team" in refusal.text) == (httpx.codes.FORBIDDEN, True)
    suggestion = suggest(scene, pod, "quota", scene.client.get(quotas).json())
    (edit,) = suggestion["edits"]
    assert (edit["where"], edit["before"]) == (CPU, "1")
    began = time.monotonic()
    change = json.dumps({"spec": {"hard": {CPU: edit["after"]}}})
    scene.client.patch(path, content=change, headers=MERGE_PATCH).raise_for_status()
    eventually(lambda: scene.client.post(scene.pods, json=pod).is_success, "the raised quota refuses the pod")
    placed = eventually(lambda: find_node(scene, f"{scene.pods}/waits"), suggestion["sentence"]["en"])
    assert placed == suggestion["node"]
    seconds = time.monotonic() - began
    figure(f"raised quota: {suggestion['sentence']['en']} Placed {seconds:.1f} s after the change.")
