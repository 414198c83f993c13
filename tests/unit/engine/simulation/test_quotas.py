"""Kubernetes' quotas in a simulation: expected by hand from what is used and what the pod asks for."""

from typing import Any

import pytest

from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import simulate_workloads
from engine.simulation.workloads import PodTemplate
from schemas.json_types import Json
from tests.support.builders.simulations import NOW, build_described

GPU = "nvidia.com/gpu"
TWO = {"cpu": "2"}


def a_node() -> Json:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: "8"}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}


def a_quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> Json:
    metadata = {"name": "team", "namespace": "ml"}
    status = {"status": {"hard": hard, "used": used}} if used else {}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}} | status


def a_pod(name: str = "p", namespace: str = "ml", node: str = "", **amounts: str) -> Json:
    requests = {GPU if name == "gpu" else name: amount for name, amount in amounts.items()}
    resources = {"requests": requests, "limits": {name: text for name, text in requests.items() if "/" in name}}
    spec: Json = {"containers": [{"name": "c", "resources": resources}]} | ({"nodeName": node} if node else {})
    metadata = {"name": name, "namespace": namespace, "uid": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def simulate(pod: Json, *objects: Json, count: int | None = None) -> Json:
    template = PodTemplate("Pod", pod["metadata"]["name"], pod, 1, {})
    return simulate_workloads(build_described(a_node(), *objects), [template], count, SimulationSetting(NOW))


def get_code(answer: Json) -> str:
    return answer["diagnosis"]["obstacle"]["code"] if answer["diagnosis"] else "fits"


@pytest.mark.parametrize(
    ("pod", "objects", "code"),
    [
        (a_pod(gpu="2"), [a_quota({f"requests.{GPU}": "3"}, {f"requests.{GPU}": "2"})], "QuotaRefusesPod"),
        (a_pod(gpu="1"), [a_quota({f"requests.{GPU}": "3"}, {f"requests.{GPU}": "2"})], "fits"),
        # Without a status, the pods of the namespace count.
        (a_pod(gpu="2"), [a_quota({f"requests.{GPU}": "3"}), a_pod("other", node="n1", gpu="2")], "QuotaRefusesPod"),
        (a_pod(gpu="2"), [a_quota({f"requests.{GPU}": "3"}), a_pod("other", "dev", "n1", gpu="2")], "fits"),
        (a_pod(cpu="2"), [a_quota({"cpu": "4"}, {"cpu": "2500m"})], "QuotaRefusesPod"),
        (a_pod(cpu="2"), [a_quota({"requests.cpu": "4500m"}, {"requests.cpu": "2500m"})], "fits"),
        (a_pod(memory="1Gi"), [a_quota({"memory": "1Gi"}, {"memory": "1"})], "QuotaRefusesPod"),
        (a_pod(), [a_quota({"pods": "1"}, {"pods": "1"})], "QuotaRefusesPod"),
        (a_pod(), [a_quota({"count/pods": "2"}, {"count/pods": "1"})], "fits"),
        # Entries about other kinds limit no pod.
        (a_pod(cpu="2"), [a_quota({"services": "0", "persistentvolumeclaims": "0"})], "fits"),
        # The pod exists already, and what is used has it.
        (a_pod(cpu="2"), [a_quota({"cpu": "2"}, {"cpu": "2"}), a_pod(cpu="2")], "fits"),
        (a_pod(cpu="2"), [a_quota({"cpu": "many"})], "fits"),
    ],
)
def test_a_pod_that_exceeds_a_quota_is_refused(pod: Json, objects: list[Json], code: str) -> None:
    assert get_code(simulate(pod, *objects)) == code


def test_the_sentence_has_the_quota_with_its_amounts() -> None:
    quota = a_quota({f"requests.{GPU}": "3"}, {f"requests.{GPU}": "2"})
    assert simulate(a_pod(gpu="2"), quota)["sentence"]["en"] == (
        "The API server would refuse to create the pod: quota team of namespace ml allows 3 nvidia.com/gpu, "
        "2 of them are used, and the pod asks for 2."
    )


def test_the_scope_of_a_quota_is_part_of_the_sentence() -> None:
    selector = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    quota = a_quota({"pods": "1"}, {"pods": "1"}, scopeSelector={"matchExpressions": [selector]})
    pod = a_pod()
    pod["spec"]["priorityClassName"] = "high"
    assert simulate(pod, quota)["sentence"] == {
        "en": "The API server would refuse to create the pod: quota team of namespace ml allows 1 pods, 1 of them are "
        "used, and this would be one more; it counts only pods of the scope PriorityClass In (high).",
        "zh": "API server 会拒绝创建该 Pod：命名空间 ml 的配额 team 允许 1 pods，已用 1，这会再多一个；"
        "该配额只统计作用域 PriorityClass In (high) 内的 Pod。",
    }


def test_amounts_that_a_quota_needs_are_named_with_their_containers() -> None:
    pod = a_pod(cpu="1")
    pod["spec"]["initContainers"] = [{"name": "load"}]
    assert simulate(pod, a_quota({"limits.cpu": "8", "requests.cpu": "8"}))["sentence"]["en"] == (
        "The API server would refuse to create the pod: quota team of namespace ml counts amounts that containers of "
        "the pod do not name: limits.cpu of c, load, requests.cpu of load."
    )


def a_limit_range(kind: str, **bounds: Any) -> Json:
    metadata = {"name": "bounds", "namespace": "ml"}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": metadata,
        "spec": {"limits": [{"type": kind, **bounds}]},
    }


@pytest.mark.parametrize(
    ("limit_range", "sentence"),
    [
        (
            a_limit_range("Container", max={GPU: "4"}),
            f"allows at most 4 {GPU} for each container, and the limit of container c is 8",
        ),
        (
            a_limit_range("Pod", max={GPU: "4"}),
            f"allows at most 4 {GPU} for each pod, and the limit of the pod as a whole is 8",
        ),
        (
            a_limit_range("Container", min={"memory": "1Gi"}, defaultRequest={"memory": "512Mi"}),
            "allows no less than 1Gi memory for each container, and container c requests 512Mi",
        ),
        (
            a_limit_range("Pod", min={"cpu": "100m"}),
            "allows no less than 0.1 cpu for each pod, and the pod as a whole requests none",
        ),
        (
            a_limit_range(
                "Container", default={"cpu": "2"}, defaultRequest={"cpu": "500m"}, maxLimitRequestRatio={"cpu": "2"}
            ),
            (
                "allows limits of cpu up to 2 times the request of each container, and the limit of container c is 4 "
                "times its request"
            ),
        ),
    ],
)
def test_a_bound_that_is_broken_is_named_with_the_amount(limit_range: Json, sentence: str) -> None:
    answer = simulate(a_pod(gpu="8"), limit_range)
    assert answer["sentence"]["en"] == (
        f"The API server would refuse to create the pod: LimitRange bounds of namespace ml {sentence}."
    )


def test_what_a_limit_range_gives_is_a_note_and_counts() -> None:
    answer = simulate(a_pod(), a_limit_range("Container", default={"cpu": "20"}))
    assert get_code(answer) == "ResourceNeverEnough"
    assert [note["text"]["en"] for note in answer["notes"] if note["code"] == "LimitRangeAdds"] == [
        "LimitRange bounds gives container c requests.cpu: 20, limits.cpu: 20."
    ]


def test_a_class_that_does_not_exist_is_named_with_the_nearest() -> None:
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "training"}}
    pod = a_pod()
    pod["spec"]["priorityClassName"] = "trainning"
    assert simulate(pod, classes)["sentence"]["en"] == (
        "The API server would refuse to create the pod: PriorityClass trainning does not exist; the nearest name is "
        "training."
    )


def list_changes(answer: Json) -> list[str]:
    return [item["sentence"]["en"] for item in answer["suggestions"]["items"]]


def test_a_smaller_request_or_a_larger_quota_is_suggested() -> None:
    quota = a_quota({f"requests.{GPU}": "3"}, {f"requests.{GPU}": "1"})
    assert list_changes(simulate(a_pod(gpu="4"), quota)) == [
        f"Lower {GPU} of c from 4 to 2: then it fits on n1.",
        f"Raise the namespace's quota of requests.{GPU} from 3 to 5: then it fits on n1.",
    ]


def test_a_larger_quota_is_not_suggested_where_no_node_has_as_much() -> None:
    quota = a_quota({f"requests.{GPU}": "8"}, {f"requests.{GPU}": "4"})
    assert list_changes(simulate(a_pod(gpu="16"), quota)) == [f"Lower {GPU} of c from 16 to 4: then it fits on n1."]


def test_an_amount_above_a_bound_is_cut_to_it() -> None:
    assert list_changes(simulate(a_pod(gpu="8"), a_limit_range("Container", max={GPU: "4"}))) == [
        f"Lower {GPU} of c from 8 to 4: then it fits on n1."
    ]


def a_claiming_pod(count: int) -> list[Json]:
    """Build a pod with a claim from a template, its class, and a slice of four devices."""
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}
    version = "resource.k8s.io/v1"
    spec = {"spec": {"devices": {"requests": [request]}}}
    template = {"kind": "ResourceClaimTemplate", "metadata": {"name": "gpus", "namespace": "ml"}, "spec": spec}
    device_class = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(4)]
    slices = {"driver": "d.example.com", "nodeName": "n1", "pool": pool, "devices": devices}
    resource_slice = {"kind": "ResourceSlice", "metadata": {"name": "n1"}, "spec": slices}
    return [pod, *({"apiVersion": version, **item} for item in (template, device_class, resource_slice))]


def test_a_quota_of_devices_of_a_class_refuses_the_claim() -> None:
    pod, *objects = a_claiming_pod(2)
    entry = "gpu.deviceclass.resource.k8s.io/devices"
    assert get_code(simulate(pod, *objects, a_quota({entry: "4"}, {entry: "2"}))) == "fits"
    assert simulate(pod, *objects, a_quota({entry: "4"}, {entry: "3"}))["sentence"]["en"] == (
        "The pod would wait for its claim p-gpu, which the API server would refuse to create: quota team of namespace "
        "ml allows 4 devices of class gpu, 3 of them are used, and the claim counts 2."
    )


def test_claims_of_pods_that_were_placed_before_count_and_hold_devices() -> None:
    pod, *objects = a_claiming_pod(1)
    entry = "gpu.deviceclass.resource.k8s.io/devices"
    limited = simulate(pod, *objects, a_quota({entry: "3"}, {entry: "1"}), count=3)
    assert [placed["node"] for placed in limited["pods"]] == ["n1", "n1", None]
    assert get_code(limited) == "QuotaRefusesClaim"
    free = simulate(pod, *objects, count=5)
    assert [placed["node"] for placed in free["pods"]] == ["n1", "n1", "n1", "n1", None]
    assert get_code(free) == "DevicesInUse"


def test_a_claim_that_pods_share_keeps_its_devices_and_its_node() -> None:
    pod, template, *objects = a_claiming_pod(3)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    metadata = {"name": "shared", "namespace": "ml"}
    claim = {**template, "kind": "ResourceClaim", "metadata": metadata, "spec": template["spec"]["spec"]}
    answer = simulate(pod, *objects, claim, count=3)
    assert [placed["node"] for placed in answer["pods"]] == ["n1", "n1", "n1"]


def test_devices_behind_an_extended_resource_are_held() -> None:
    pod, _, device_class, resource_slice = a_claiming_pod(1)
    device_class["spec"] = {"extendedResourceName": "example.com/gpu"}
    pod["spec"] = a_pod(**{"example.com/gpu": "2"})["spec"]
    answer = simulate(pod, device_class, resource_slice, count=3)
    assert [placed["node"] for placed in answer["pods"]] == ["n1", "n1", None]


def test_pods_that_were_placed_before_count() -> None:
    quota = a_quota({f"requests.{GPU}": "5"}, {f"requests.{GPU}": "1"})
    answer = simulate(a_pod(gpu="2"), quota, count=3)
    assert [pod["node"] for pod in answer["pods"]] == ["n1", "n1", None]
    assert get_code(answer) == "QuotaRefusesPod"
