"""A node explained: reasons by device with the values behind them, and their counts."""

from typing import Any

import pytest

from engine.claims.judgement import DeviceReason
from engine.summaries.text import write_reasons
from schemas.reasons import read_catalogue
from tests.support.builders.claims import (
    JudgedClaims,
    a_claim,
    a_class,
    a_device,
    a_pod_with,
    a_request,
    a_slice,
    an_allocation,
    judge_claims,
)
from tests.support.builders.cluster import Object, a_node

BIG = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"


def judge(*devices: Object, claim: Object | None = None, others: tuple[Object, ...] = (), **more: Any) -> JudgedClaims:
    return judge_claims(a_node(), a_class(), a_slice(*devices), claim or a_claim(), *others, **more)


def list_reasons(judged: JudgedClaims, position: int = 0) -> dict[str, list[str]]:
    request = judged.explain_request(position)
    return {item.id[2]: [finding.reason.value for finding in item.findings] for item in request.devices}


def test_every_reason_has_an_explanation_in_the_same_order() -> None:
    about_claims = [code for code, reason in read_catalogue().items() if reason.scope == "claim"]
    assert [reason.value for reason in DeviceReason] == about_claims


def test_a_device_that_a_selector_refuses_is_reported_with_its_value() -> None:
    judged = judge(a_device("a", "46068Mi"), a_device("b", "80Gi"), claim=a_claim(a_request(BIG)))
    assert judged.list_texts("a") == ["claim default/c0: selector #0: memory 46068Mi, asked at least 80Gi"]
    assert judged.list_texts("b") == []
    assert judged.explain().allocations[0].devices[0].device == "b"


def test_a_device_in_use_is_reported_with_the_claim_and_its_pods() -> None:
    held = a_claim(name="held", status=an_allocation("a", pods=["train-0", "train-1", "train-2", "train-3"]))
    judged = judge(a_device("a"), others=(held,))
    assert judged.list_texts("a") == [
        "in use by claim default/held, reserved for pod train-0, pod train-1, pod train-2 and 1 more"
    ]
    unused = a_claim(name="held", status=an_allocation("a"))
    assert judge(a_device("a"), others=(unused,)).list_texts("a") == [
        "in use by claim default/held, reserved for nobody"
    ]


def test_what_no_end_of_a_pod_changes_is_reported_first() -> None:
    held = a_claim(name="held", status=an_allocation("a"))
    judged = judge(a_device("a", "40Gi"), claim=a_claim(a_request(BIG)), others=(held,))
    assert list_reasons(judged) == {"a": ["SelectorNotMatched", "DeviceInUse"]}


def test_devices_are_counted_by_their_first_reason() -> None:
    held = a_claim(name="held", status=an_allocation("c"))
    tainted = a_device("d", "80Gi", taints=[{"key": "bad", "effect": "NoExecute"}])
    devices = [a_device("a", "40Gi"), a_device("b", "40Gi"), a_device("c", "80Gi"), tainted]
    request = judge(*devices, claim=a_claim(a_request(BIG)), others=(held,)).explain_request()
    assert write_reasons(request.counts, len(request.devices)) == (
        "1/4 DeviceInUse, 1/4 DeviceTainted, 2/4 SelectorNotMatched"
    )


def test_a_class_that_refuses_is_reported_apart_from_the_request() -> None:
    other = a_class("device.driver == 'nic.example.com'", name="nic")
    judged = judge(a_device("a"), claim=a_claim(a_request(device_class="nic")), others=(other,))
    assert list_reasons(judged) == {"a": ["ClassNotMatched"]}
    assert judged.list_texts("a") == ['class nic: selector #0: driver "gpu.nvidia.com", asked "nic.example.com"']


def test_a_selector_that_fails_is_reported_with_the_attribute_that_is_missing() -> None:
    judged = judge(a_device("a"), claim=a_claim(a_request("device.attributes['gpu.nvidia.com'].rack == 'r1'")))
    assert list_reasons(judged) == {"a": ["SelectorError"]}
    (text,) = judged.list_texts("a")
    assert text.startswith("claim default/c0: selector #0 fails: rack is not set, and device.attributes")


def test_a_selector_that_does_not_compile_is_reported_in_one_line() -> None:
    judged = judge(a_device("a"), claim=a_claim(a_request("device.nosuch == 1")))
    (text,) = judged.list_texts("a")
    assert text.endswith("does not compile: compilation failed: ERROR: <input>:1:7: undefined field 'nosuch'")


def test_too_few_devices_are_reported_as_such() -> None:
    held = a_claim(name="held", status=an_allocation("a"))
    judged = judge(a_device("a"), a_device("b"), claim=a_claim(a_request(count=2)), others=(held,))
    assert judged.list_texts("b") == ["it fits, and 2 are asked for, but only 1 of the node's do"]


def test_a_device_is_not_blamed_for_what_another_request_lacks() -> None:
    judged = judge(a_device("a", "40Gi"), claim=a_claim(a_request(), a_request(BIG, name="r1")))
    assert list_reasons(judged, 0) == {"a": []}
    assert list_reasons(judged, 1) == {"a": ["SelectorNotMatched"]}


def test_devices_that_fit_only_one_by_one_are_reported_as_such() -> None:
    numas = [a_device("a", attributes={"numa": 0}), a_device("b", attributes={"numa": 1})]
    claim = a_claim(a_request(count=2), constraints=[{"matchAttribute": "gpu.nvidia.com/numa"}])
    judged = judge(*numas, claim=claim)
    assert judged.list_texts("b") == ["matchAttribute gpu.nvidia.com/numa: 1, the devices taken before it have 0"]
    missing = judge(a_device("a"), claim=claim)
    assert missing.list_texts("a") == ["matchAttribute gpu.nvidia.com/numa: the device does not have it"]


def test_a_device_that_another_claim_of_the_pod_takes_is_reported_as_such() -> None:
    judged = judge_claims(
        a_node(), a_class(), a_slice(a_device("a")), a_claim(), a_claim(name="c1"), pod=a_pod_with("c0", "c1")
    )
    assert judged.list_texts("a", 1) == ["taken for claim default/c0"]


@pytest.mark.parametrize(
    ("memory", "amount", "reason", "text"),
    [
        ("40Gi", "50Gi", "CapacityTooSmall", "memory 40Gi, asked 50Gi"),
        ("40Gi", "20Gi", "CapacityExhausted", "memory: 10Gi of 40Gi left, asked 20Gi"),
    ],
)
def test_capacity_that_is_not_there_is_reported_apart_from_capacity_in_use(
    memory: str, amount: str, reason: str, text: str
) -> None:
    held = a_claim(name="held", status=an_allocation("a", shareID="1", consumedCapacity={"memory": "30Gi"}))
    claim = a_claim(a_request(capacity={"requests": {"memory": amount}}))
    judged = judge(a_device("a", memory, allowMultipleAllocations=True), claim=claim, others=(held,))
    assert list_reasons(judged) == {"a": [reason]}
    assert judged.list_texts("a") == [text]


def test_a_capacity_without_a_name_on_the_device_is_reported() -> None:
    judged = judge(a_device("a"), claim=a_claim(a_request(capacity={"requests": {"cores": "1"}})))
    assert judged.list_texts("a") == ["it has no capacity cores"]


def test_counters_that_others_have_used_up_are_reported() -> None:
    consuming = [{"counterSet": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
    devices = a_slice(a_device("a", consumesCounters=consuming), a_device("b", consumesCounters=consuming))
    counters = a_slice(name="counters", sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "60Gi"}}}])
    for slice_ in (devices, counters):
        slice_["spec"]["pool"]["resourceSliceCount"] = 2
    held = a_claim(name="held", status=an_allocation("a"))
    judged = judge_claims(a_node(), a_class(), devices, counters, a_claim(), held)
    assert list_reasons(judged) == {"a": ["DeviceInUse"], "b": ["CountersExhausted"]}
    assert judged.list_texts("b") == ["memory of gpu: 20Gi left, the device needs 40Gi"]


def test_devices_of_an_incomplete_pool_are_reported_with_the_slices_that_are_missing() -> None:
    offered = a_slice(a_device("a"))
    offered["spec"]["pool"]["resourceSliceCount"] = 2
    judged = judge_claims(a_node(), a_class(), offered, a_claim())
    assert list_reasons(judged) == {"a": ["PoolIncomplete"]}
    assert judged.list_texts("a") == ["pool gpu.nvidia.com/n1 has 1 of 2 slices of generation 1"]


def test_a_device_that_the_node_does_not_reach_is_reported() -> None:
    fabric = a_slice(
        a_device("a", nodeName="n1"), a_device("b", nodeName="n2"), nodeName=None, perDeviceNodeSelection=True
    )
    judged = judge_claims(a_node(), a_class(), fabric, a_claim(a_request(count=2)))
    assert list_reasons(judged) == {"a": ["TooFewDevices"], "b": ["DeviceNotOnNode"]}


def test_a_malformed_property_of_a_device_is_reported_with_its_place() -> None:
    judged = judge(a_device("a", taints="all"))
    cause = "ResourceSlice n1-slice: spec.devices[0].taints is 'all', not a list"
    assert judged.get_cause() == cause
    assert judged.explain().verdict.unjudged == cause
