"""Suggestions about what kube-scheduler's filters look at, done literally: the real kube-scheduler places the pod."""

import json
from collections.abc import Callable, Iterator, Sequence

import pytest

from dev.embedded.control_plane import ControlPlane
from engine.simulation.claim_changes import replace_expression
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
    lower_request,
    opened_scene,
)
from tests.support.control_plane.objects import MERGE_PATCH, create
from tests.support.control_plane.plain_scheduler import a_pod
from tests.support.control_plane.scheduled_pods import bind_claim, delete_objects

GPU = "nvidia.com/gpu"
BOUND = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('80Gi')) >= 0"


def prepare_taint(scene: Scene) -> None:
    taint = {"key": "pool", "value": "infer", "effect": "NoSchedule"}
    scene.add_nodes(a_cpu_node(f"{scene.namespace}-a", spec={"taints": [taint]}))


def add_toleration(scene: Scene, pod: Json, edit: Json) -> None:
    pair, _, effect = edit["after"].rpartition(":")
    key, _, value = pair.partition("=")
    toleration = {"key": key, "operator": "Equal", "value": value, "effect": effect}
    scene.replace_pod(pod | {"spec": pod["spec"] | {"tolerations": [toleration]}})


def prepare_plain(scene: Scene) -> None:
    scene.add_nodes(a_cpu_node(f"{scene.namespace}-a"))


def drop_term(scene: Scene, pod: Json, edit: Json) -> None:
    selector = {key: value for key, value in pod["spec"]["nodeSelector"].items() if f"{key}={value}" != edit["before"]}
    assert len(selector) == len(pod["spec"]["nodeSelector"]) - 1
    scene.replace_pod(pod | {"spec": pod["spec"] | {"nodeSelector": selector}})


def prepare_cordon(scene: Scene) -> None:
    scene.add_nodes(a_cpu_node(f"{scene.namespace}-a", spec={"unschedulable": True}))


def uncordon(scene: Scene, _: Json, edit: Json) -> None:
    change = json.dumps({"spec": {"unschedulable": None}})
    path = f"/api/v1/nodes/{edit['where']}"
    scene.client.patch(path, content=change, headers=MERGE_PATCH).raise_for_status()


def prepare_full(scene: Scene) -> None:
    """Fill the node with a pod that asks for most of it and for its device."""
    name = f"{scene.namespace}-a"
    scene.add_nodes(a_cpu_node(name, amounts={GPU: "1"}))
    holder = a_pod("holder", nodeName=name, requests={"cpu": "3"}, limits={GPU: "1"})
    create(scene.client, scene.pods, holder)


def add_node(scene: Scene, _: Json, edit: Json) -> None:
    node = scene.client.get(f"/api/v1/nodes/{edit['where']}").json()
    name = f"{edit['where']}-new"
    amounts = node["status"]["allocatable"]
    scene.add_nodes(a_cpu_node(name, amounts=amounts))


def publish_devices(scene: Scene) -> None:
    """Publish devices of 24 and 40 Gi on a node."""
    node = f"{scene.namespace}-a"
    scene.add_nodes(a_cpu_node(node))
    devices = [{"name": f"gpu-{gib}", "capacity": {"memory": {"value": f"{gib}Gi"}}} for gib in (24, 40)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    scene.add(f"{DRA}/resourceslices", {"metadata": {"name": node}, "spec": spec})


def add_claim(scene: Scene, *expressions: str) -> None:
    request = {"deviceClassName": scene.namespace, "selectors": [{"cel": {"expression": text}} for text in expressions]}
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
    scene.add(f"{DRA}/namespaces/{scene.namespace}/resourceclaims", {"metadata": {"name": "claim"}, "spec": claim})


def prepare_claim(scene: Scene) -> None:
    """Publish devices of 24 and 40 Gi to a claim that asks for 80."""
    publish_devices(scene)
    add_class(scene, scene.namespace)
    add_claim(scene, BOUND)


def prepare_class(scene: Scene) -> None:
    """Publish devices that are not of the class that the claim names, and of another one of the driver."""
    publish_devices(scene)
    add_class(scene, scene.namespace, BOUND)
    add_class(scene, f"{scene.namespace}-small")
    add_claim(scene)


def name_another_class(scene: Scene, _: Json, edit: Json) -> None:
    name, _, request = edit["where"].partition(": ")
    path = f"{DRA}/namespaces/{scene.namespace}/resourceclaims"
    (entry,) = scene.client.get(f"{path}/{name}").json()["spec"]["devices"]["requests"]
    assert (entry["name"], entry["exactly"]["deviceClassName"]) == (request, edit["before"])
    changed = entry | {"exactly": entry["exactly"] | {"deviceClassName": edit["after"]}}
    delete_objects(scene.client, [f"{path}/{name}"])
    scene.add(path, {"metadata": {"name": name}, "spec": {"devices": {"requests": [changed]}}})


def rewrite_claim(scene: Scene, _: Json, edit: Json) -> None:
    path = f"{DRA}/namespaces/{scene.namespace}/resourceclaims"
    claim = scene.client.get(f"{path}/{edit['where']}").json()
    looser = replace_expression(claim["spec"], BOUND, BOUND.replace(edit["before"], edit["after"]))
    assert looser != claim["spec"]
    delete_objects(scene.client, [f"{path}/{edit['where']}"])
    scene.add(path, {"metadata": {"name": edit["where"]}, "spec": looser})


def prepare_volume(scene: Scene) -> None:
    """Bind the pod's claim to a volume of a node that is gone, while another volume is free on a node that is there."""
    scene.add_nodes(a_cpu_node(f"{scene.namespace}-a", metadata=name_host(f"{scene.namespace}-a")))
    storage = "/apis/storage.k8s.io/v1/storageclasses"
    late = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    scene.add(storage, {"metadata": {"name": scene.namespace}} | late)
    for name in ("gone", "a"):
        scene.add_volume(a_local_volume(scene.namespace, f"{scene.namespace}-{name}"))
    claims = f"/api/v1/namespaces/{scene.namespace}/persistentvolumeclaims"
    spec = {
        "accessModes": ["ReadWriteOnce"], "storageClassName": scene.namespace, "volumeName": f"{scene.namespace}-gone",
        "resources": {"requests": {"storage": "1Gi"}},
    }  # fmt: skip
    scene.add(claims, {"metadata": {"name": "data"}, "spec": spec})
    bind_claim(scene.client, f"{claims}/data", f"{scene.namespace}-gone")


def name_host(name: str) -> Json:
    return {
        "name": name,
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"kubernetes.io/hostname": name},
    }


def a_local_volume(storage_class: str, name: str) -> Json:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
    spec = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }  # fmt: skip
    return {"metadata": {"name": name}, "spec": spec}


def renew_volume(scene: Scene, pod: Json, edit: Json) -> None:
    claims = f"/api/v1/namespaces/{scene.namespace}/persistentvolumeclaims"
    spec = scene.client.get(f"{claims}/{edit['where']}").json()["spec"]
    assert spec.pop("volumeName") == edit["before"]
    scene.add(claims, {"metadata": {"name": edit["after"]}, "spec": spec})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": edit["after"]}}
    scene.replace_pod(pod | {"spec": pod["spec"] | {"volumes": [volume]}})


CLAIMED: Json = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}]}
MOUNTED: Json = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
CASES: Sequence[Case] = (
    Case("taint", prepare_taint, add_toleration),
    Case("selector", prepare_plain, drop_term, {"nodeSelector": {"disk": "nvme"}}),
    Case("request", prepare_plain, lower_request, requests={"cpu": "6"}),
    Case("uncordon", prepare_cordon, uncordon),
    Case("node", prepare_full, add_node, requests={"cpu": "2"}),
    Case("use", prepare_full, end_holder, requests={"cpu": "2"}),
    Case("claim", prepare_claim, rewrite_claim, CLAIMED),
    Case("class", prepare_class, name_another_class, CLAIMED),
    Case("volume", prepare_volume, renew_volume, MOUNTED),
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
