"""The claims of a pod: refusals before any node is looked at, and claims for extended resources."""

from typing import Any

import pytest

from engine.claims.extended import CLASS_PREFIX, is_extended, map_classes
from engine.claims.gates import Gates
from engine.claims.inventory import read_inventory
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.claims.requests import DeviceClass
from engine.filters.verdicts import StatusCode
from engine.snapshot.pods import read_pod
from engine.snapshot.reading import read_snapshot
from tests.support.builders.claims import (
    JudgedClaims,
    a_claim,
    a_class,
    a_device,
    a_pod_with,
    a_request,
    a_slice,
    judge_claims,
)
from tests.support.builders.cluster import Object, a_node, a_pod


def refuse(*objects: Object, pod: Object | None = None, gates: Gates | None = None) -> str:
    """Return the reason for which a pod is refused before the nodes; "" if it is not."""
    judged = judge_claims(a_node(), *objects, pod=pod or a_pod_with("c0"), gates=gates or Gates())
    refusal = judged.judge.pod_claims.pre_filter
    return refusal.reasons[0] if refusal else ""


def from_template(status: list[Object], uid: str = "uid-p1") -> Object:
    pod = a_pod()
    pod["metadata"]["uid"] = uid
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    pod["status"]["resourceClaimStatuses"] = status
    return pod


def build_owned_claim(uid: str) -> Object:
    claim = a_claim()
    claim["metadata"]["ownerReferences"] = [{"controller": True, "kind": "Pod", "name": "p1", "uid": uid}]
    return claim


def test_a_claim_that_is_not_there_keeps_the_pod_from_the_queue() -> None:
    assert refuse() == 'could not find ResourceClaim "default/c0"'
    judged = judge_claims(a_node())
    assert judged.judge.pod_claims.pre_enqueue == judged.judge.pod_claims.pre_filter


def test_a_claim_that_is_being_deleted_refuses() -> None:
    claim = a_claim()
    claim["metadata"]["deletionTimestamp"] = "2026-11-25T10:00:00Z"
    assert refuse(claim) == 'resourceclaim "c0" is being deleted'


def test_a_template_without_its_claim_refuses() -> None:
    assert refuse(pod=from_template([])) == 'pod "default/p1": ResourceClaim not created yet'


def test_a_template_that_asks_for_nothing_counts_as_no_claim() -> None:
    judged = judge_claims(a_node(), pod=from_template([{"name": "gpu"}]))
    assert judged.judge.pod_claims.is_empty
    assert judged.get_reasons() == ()


def test_a_claim_made_from_a_template_belongs_to_one_pod() -> None:
    pod = from_template([{"name": "gpu", "resourceClaimName": "c0"}])
    assert refuse(build_owned_claim("uid-p1"), a_class(), pod=pod) == ""
    cause = "ResourceClaim default/c0 was not created for Pod default/p1 (Pod is not owner)"
    assert refuse(build_owned_claim("uid-other"), a_class(), pod=pod) == cause
    assert refuse(build_owned_claim("uid-other"), a_class()) == ""


def test_an_entry_that_names_no_claim_refuses() -> None:
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [{"name": "gpu"}]
    assert refuse(pod=pod) == 'pod "default/p1", spec.resourceClaim "gpu": none of the supported fields are set'


def test_a_class_that_is_not_there_refuses_without_keeping_the_pod_from_the_queue() -> None:
    judged = judge_claims(a_node(), a_claim())
    pod_claims = judged.judge.pod_claims
    assert pod_claims.pre_enqueue is None
    assert pod_claims.pre_filter is not None
    assert pod_claims.pre_filter.reasons == ("request r0: device class gpu does not exist",)
    alternatives = {"name": "r0", "firstAvailable": [{"name": "a", "deviceClassName": "none"}]}
    assert refuse(a_claim(alternatives)) == "request r0/a: device class none does not exist"


def test_a_request_of_an_unknown_type_refuses() -> None:
    cause = "resource claim default/c0, request r0: unknown request type"
    assert refuse(a_claim({"name": "r0", "future": {}})) == cause


def test_a_request_without_a_class_is_an_error() -> None:
    judged = judge_claims(a_node(), a_claim(a_request(device_class="")))
    refusal = judged.judge.pod_claims.pre_filter
    assert refusal is not None
    assert (refusal.code, refusal.reasons) == (StatusCode.ERROR, ("request r0: unsupported request type",))


def test_alternatives_need_their_feature_gate() -> None:
    alternatives = {"name": "r0", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}
    cause = "resource claim default/c0, request r0: has subrequests, but the DRAPrioritizedList feature is disabled"
    assert refuse(a_claim(alternatives), a_class(), gates=Gates(prioritized_list=False)) == cause


def test_a_malformed_claim_of_the_pod_is_named_with_its_field() -> None:
    claim = a_claim(a_request(count="two"))
    inventory = read_inventory(read_snapshot([a_node(), a_class(), claim]))
    with pytest.raises(ClaimRejectedError, match=r"spec\.devices\.requests\[0\]\.exactly\.count is 'two'"):
        collect_claims(inventory, read_pod(a_pod_with("c0")), {})


GPUS = "nvidia.com/gpu"


def build_asking_pod(*amounts: str, init: tuple[str, ...] = (), restart: str = "") -> Object:
    pod = a_pod()
    pod["spec"]["containers"] = [a_container(amount) for amount in amounts]
    pod["spec"]["initContainers"] = [
        a_container(amount) | ({"restartPolicy": restart} if restart else {}) for amount in init
    ]
    return pod


def a_container(amount: str) -> Object:
    return {"name": "main", "resources": {"requests": {"cpu": "1", GPUS: amount}}}


def judge_extended(pod: Object, *objects: Object, devices: int = 4, **more: Any) -> JudgedClaims:
    offered = a_slice(*(a_device(f"gpu-{index}") for index in range(devices)))
    return judge_claims(a_node(), a_class(extendedResourceName=GPUS), offered, *objects, pod=pod, **more)


def test_an_extended_resource_is_served_by_devices_of_its_class() -> None:
    judged = judge_extended(build_asking_pod("1", "2"))
    assert judged.judge.pod_claims.to_allocate == ("<extended-resources>",)
    assert judged.list_devices() == ["gpu-0", "gpu-1", "gpu-2"]
    requests = [device.request for device in judged.judge.allocate(judged.snapshot.nodes["n1"].node)[0].devices]
    assert requests == ["container-0-request-1", "container-1-request-1", "container-1-request-1"]
    assert judge_extended(build_asking_pod("5")).get_reasons() == ("cannot allocate all claims",)


def test_an_init_container_uses_the_devices_of_later_containers_first() -> None:
    assert len(judge_extended(build_asking_pod("2", init=("1",))).list_devices()) == 2
    assert len(judge_extended(build_asking_pod("2", init=("3", "4"))).list_devices()) == 4
    assert len(judge_extended(build_asking_pod("2", init=("1",), restart="Always")).list_devices()) == 3


def test_a_node_whose_device_plugin_offers_the_resource_needs_no_claim() -> None:
    node = a_node(gpu="8")
    judged = judge_claims(node, a_class(extendedResourceName=GPUS), pod=build_asking_pod("2"))
    assert judged.get_reasons() == ()
    assert judged.list_devices() == []


def test_a_resource_that_nothing_on_a_node_serves_refuses_it() -> None:
    pod = build_asking_pod("1")
    pod["spec"]["containers"][0]["resources"]["requests"]["example.com/nic"] = "1"
    assert judge_extended(pod).get_reasons() == ("cannot fit resource",)


def test_the_claim_of_an_earlier_attempt_has_to_go_first() -> None:
    prior = build_owned_claim("uid-p1")
    prior["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert judge_extended(build_asking_pod("1"), prior).get_reasons() == ("cannot schedule extended resource claim",)


def test_without_the_feature_gate_no_class_serves_a_resource() -> None:
    assert judge_extended(build_asking_pod("1"), gates=Gates(extended_resources=False)).judge.pod_claims.is_empty


def test_of_two_classes_for_a_resource_the_newer_counts_then_the_first_name() -> None:
    old, new = DeviceClass("b", (), GPUS, "2026-01-01T00:00:00Z"), DeviceClass("a", (), GPUS, "2026-01-02T00:00:00Z")
    assert map_classes([old, new])[GPUS] == "a"
    assert map_classes([DeviceClass("b", (), GPUS, ""), DeviceClass("a", (), GPUS, "")])[GPUS] == "a"
    assert map_classes([new])[f"{CLASS_PREFIX}a"] == "a"


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (GPUS, True),
        (f"{CLASS_PREFIX}gpu", True),
        ("cpu", False),
        ("kubernetes.io/batch-cpu", False),
        ("requests.nvidia.com/gpu", False),
        ("nvidia.com/gpu/x", False),
        ("NVIDIA.com/gpu", False),
        ("nvidia.com/" + "g" * 64, False),
    ],
)
def test_a_resource_is_extended_by_its_name(resource: str, expected: bool) -> None:
    assert is_extended(resource) == expected
