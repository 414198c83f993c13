"""Sentences about devices that are not picked: one of each kind, with its values."""

from typing import Any

import pytest

from engine.claims.allocated import AllocatedDevices, DeviceHolder, collect_allocated
from engine.claims.capacity import Shortage
from engine.claims.claims import read_claim
from engine.claims.constraints import AttributeValue, Conflict
from engine.claims.counters import CounterShortage
from engine.claims.device_details import DeviceTaint
from engine.claims.findings import (
    DeviceFinding,
    describe_by_code,
    describe_holder,
    describe_refusal,
    format_attribute,
    sort_findings,
)
from engine.claims.judgement import DeviceReason, to_line
from engine.claims.quantity import NANO
from engine.claims.requests import ClaimRequest, ConstraintSpec, read_claim_spec
from engine.claims.reservations import Refusal, TakenDevice
from tests.support.builders.claims import a_claim, a_request, an_allocation

GI = 2**30 * NANO
MATCH = ConstraintSpec("matchAttribute", "gpu.nvidia.com/numa", frozenset())
DISTINCT = ConstraintSpec("distinctAttribute", "gpu.nvidia.com/numa", frozenset())


def read_request(**fields: Any) -> ClaimRequest:
    spec = read_claim_spec(a_claim(a_request(**fields))["spec"])
    (request,) = spec.groups[0].choices
    return request


def build_holder(*pods: str, name: str = "held") -> DeviceHolder:
    return DeviceHolder(read_claim("default", name, a_claim(name=name, status=an_allocation("a", pods=pods))), "r0")


@pytest.mark.parametrize(
    ("refusal", "reason", "text"),
    [
        (DeviceTaint("bad", "x", "NoSchedule"), "DeviceTainted", "taint bad=x:NoSchedule is not tolerated"),
        (
            DeviceTaint("bad", "", "NoExecute", "drain"),
            "DeviceTainted",
            "taint bad:NoExecute of DeviceTaintRule drain is not tolerated",
        ),
        (Shortage("cores", is_undefined=True), "CapacityNotDefined", "it has no capacity cores"),
        (Shortage("memory", False, 50 * GI, 40 * GI, 40 * GI), "CapacityTooSmall", "memory 40Gi, asked 50Gi"),
        (
            Shortage("memory", False, 40 * GI, 10 * GI, 40 * GI),
            "CapacityExhausted",
            "memory: 10Gi of 40Gi left, asked 40Gi",
        ),
        (
            Shortage("memory", False, 50 * GI, 40 * GI, 40 * GI, breaks_policy=True),
            "CapacityNotAllowed",
            "memory: 50Gi is no amount that the device hands out",
        ),
        (
            CounterShortage("", "", 0, 0),
            "CountersExhausted",
            "it shares counters with others, which the cluster does not support",
        ),
        (
            CounterShortage("gpu", "memory", 0, -1),
            "CountersExhausted",
            "memory of gpu is overbooked, so the pool gives no device with counters",
        ),
        (
            CounterShortage("gpu", "memory", 40 * GI, -GI),
            "CountersExhausted",
            "memory of gpu: 0 left, the device needs 40Gi",
        ),
        (
            CounterShortage("gpu", "memory", 40 * GI, GI, (build_holder(),)),
            "CountersExhausted",
            "memory of gpu: 1Gi left, the device needs 40Gi; used by claim default/held, reserved for nobody",
        ),
        (
            Conflict(MATCH, None),
            "ConstraintNotMet",
            "matchAttribute gpu.nvidia.com/numa: the device does not have it",
        ),
        (
            Conflict(MATCH, ("int", 1), (("int", 0), ("int", 0), ("string", "x"))),
            "ConstraintNotMet",
            "matchAttribute gpu.nvidia.com/numa: 1, the devices taken before it have 0 and x",
        ),
        (
            Conflict(DISTINCT, ("bool", True), (("bool", True),)),
            "ConstraintNotMet",
            "distinctAttribute gpu.nvidia.com/numa: true, which a device taken before it has as well",
        ),
        (TakenDevice("default/c0"), "DeviceTakenByPod", "taken for claim default/c0"),
    ],
)
def test_a_refusal_is_a_sentence_with_its_values(refusal: Refusal, reason: str, text: str) -> None:
    finding = describe_refusal(refusal, read_request())
    assert (finding.reason.value, finding.text, finding.cause) == (reason, text, refusal)


def test_a_device_that_a_claim_watches_already_is_not_taken_for_it_again() -> None:
    finding = describe_refusal(TakenDevice("default/c0"), read_request(adminAccess=True))
    assert (finding.reason, finding.text) == (DeviceReason.TAKEN_BY_POD, "this claim has it already")


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        ((), "in use by claim default/held, reserved for nobody"),
        (("a",), "in use by claim default/held, reserved for pod a"),
        (("a", "b", "c"), "in use by claim default/held, reserved for pod a, pod b, pod c"),
        (("a", "b", "c", "d", "e"), "in use by claim default/held, reserved for pod a, pod b, pod c and 2 more"),
    ],
)
def test_a_holder_is_named_with_three_of_its_pods(pods: tuple[str, ...], text: str) -> None:
    assert describe_holder(build_holder(*pods)).text == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (("bool", False), "false"),
        (("int", 7), "7"),
        (("string", "True"), "True"),
        (("", None), "a list, which constraints do not compare"),
    ],
)
def test_an_attribute_is_written_as_in_a_manifest(value: AttributeValue, text: str) -> None:
    assert format_attribute(value) == text


def test_findings_stand_in_the_order_of_their_reasons() -> None:
    reasons = [DeviceReason.TOO_FEW, DeviceReason.IN_USE, DeviceReason.POOL_INVALID, DeviceReason.CLASS_NOT_FOUND]
    findings = [DeviceFinding(reason, reason.value) for reason in reasons]
    assert sort_findings(findings) == tuple(reversed(findings))


def test_a_statement_keeps_its_values() -> None:
    finding = describe_by_code(DeviceReason.TOO_FEW, "too_few", wanted=2, count=1)
    assert finding.text == "it fits, and 2 are asked for, but only 1 of the node's do"
    assert finding.cause is not None
    assert getattr(finding.cause, "values") == (("wanted", 2), ("count", 1))  # noqa: B009 - one of several causes


@pytest.mark.parametrize(
    ("text", "line"),
    [("a b", "a b"), ("a\nb", "a\\nb"), ("x" * 1000, "x" * 1000), ("x" * 1001, "x" * 1000 + "…"), ("'\x1b", "'\\x1b")],
)
def test_a_text_of_an_object_becomes_one_line(text: str, line: str) -> None:
    assert to_line(text).replace('"', "") == line


def collect(*results: dict[str, Any], with_shares: bool = True) -> AllocatedDevices:
    claims = [
        read_claim("default", f"c{number}", a_claim(name=f"c{number}", status=an_allocation("a", **result)))
        for number, result in enumerate(results)
    ]
    return collect_allocated([*claims, read_claim("default", "waiting", a_claim())], with_shares=with_shares)


DEVICE = ("gpu.nvidia.com", "n1", "a")


def test_shares_of_a_device_add_up() -> None:
    shares: list[dict[str, Any]] = [
        {"shareID": str(number), "consumedCapacity": {"memory": f"{number}Gi"}} for number in (1, 2)
    ]
    allocated = collect(*shares)
    assert allocated.consumed == {DEVICE: {"memory": 3 * GI}}
    assert (allocated.find_holder(DEVICE), allocated.is_allocated(DEVICE)) == (None, True)
    assert allocated.shared_pools == {DEVICE[:2]}
    assert len(allocated.shares[DEVICE]) == 2


def test_shares_without_the_gate_are_whole_devices() -> None:
    allocated = collect({"shareID": "1", "consumedCapacity": {"memory": "1Gi"}}, with_shares=False)
    assert (dict(allocated.shares), dict(allocated.consumed)) == ({}, {})
    assert allocated.find_holder(DEVICE) is not None


def test_a_share_that_takes_no_capacity_leaves_all_of_it() -> None:
    allocated = collect({"shareID": "1"})
    assert allocated.consumed == {}
    assert allocated.is_allocated(DEVICE)


def test_access_for_monitoring_is_no_use() -> None:
    assert not collect({"adminAccess": True}).is_allocated(DEVICE)
