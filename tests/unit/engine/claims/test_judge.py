"""Verdicts of DynamicResources on a node: allocated claims that wait for their devices, and causes left open.

Expected values: KEP 5007 (device binding conditions: ten minutes, then the allocation is given up; a failure condition
that is true gives it up at once) and kube-scheduler's texts as recorded in tests/conformance.
"""

from datetime import UTC, datetime, timedelta

import pytest

from engine.claims.gates import Gates
from engine.claims.judge import TIMEOUT, ClaimsJudge, is_ready_to_bind
from engine.filters.verdicts import StatusCode
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

ALLOCATED_AT = datetime(2026, 11, 25, 11, tzinfo=UTC)
NOT_ON_NODE = ("resourceclaim not available on the node",)


def a_waiting_claim(*devices: dict[str, str] | None, conditions: tuple[str, ...] = ("ready",)) -> Object:
    """Build a claim with devices of these conditions; None: no driver has written any."""
    names = [f"gpu-{position}" for position in range(len(devices))]
    status = an_allocation(*names, bindingConditions=list(conditions), bindingFailureConditions=["broken", "lost"])
    status["allocation"]["allocationTimestamp"] = "2026-11-25T11:00:00Z"
    status["devices"] = [
        {
            "driver": "gpu.nvidia.com",
            "pool": "n1",
            "device": name,
            "conditions": [{"type": kind, "status": state} for kind, state in states.items()],
        }
        for name, states in zip(names, devices, strict=True)
        if states is not None
    ]
    return a_claim(status=status)


def is_ready(claim: Object, waited: timedelta | None) -> bool:
    judged = judge_claims(a_node(), a_class(), claim)
    return is_ready_to_bind(judged.judge.pod_claims.stored[0], None if waited is None else ALLOCATED_AT + waited)


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("devices", "waited", "ready"),
    [
        ([{"ready": "True"}], 60 * MINUTE, True),
        ([{"ready": "False"}], 10 * MINUTE, True),
        ([{"ready": "False"}], 10 * MINUTE + timedelta(seconds=1), False),
        ([{"ready": "False"}], None, True),
        ([{}], 11 * MINUTE, False),
        ([None], 9 * MINUTE, True),
        ([None], 11 * MINUTE, False),
        # The first device that is not ready decides, and each has to be ready.
        ([{"ready": "True"}, {"ready": "False"}], 11 * MINUTE, False),
        ([{"ready": "True"}, {"ready": "True"}], 11 * MINUTE, True),
        ([{"ready": "True"}, {"ready": "True", "lost": "True"}], MINUTE, False),
        ([{"ready": "True", "broken": "False"}], MINUTE, True),
        ([{"ready": "True", "broken": "True"}], None, False),
    ],
)
def test_a_claim_waits_ten_minutes_for_the_conditions_of_its_devices(
    devices: list[dict[str, str] | None], waited: timedelta | None, ready: bool
) -> None:
    assert timedelta(minutes=10) == TIMEOUT
    assert is_ready(a_waiting_claim(*devices), waited) == ready


def test_a_claim_without_the_time_of_its_allocation_is_never_overdue() -> None:
    claim = a_waiting_claim({"ready": "False"})
    del claim["status"]["allocation"]["allocationTimestamp"]
    assert is_ready(claim, 60 * MINUTE)


def test_a_device_without_binding_conditions_waits_for_nothing() -> None:
    assert is_ready(a_waiting_claim({"broken": "True"}, conditions=()), 11 * MINUTE)


def test_every_condition_has_to_be_true() -> None:
    both = a_waiting_claim({"ready": "True", "attached": "False"}, conditions=("ready", "attached"))
    assert is_ready(both, MINUTE)
    assert not is_ready(both, 11 * MINUTE)


def test_without_the_gate_conditions_do_not_count() -> None:
    claim, now = a_waiting_claim({"broken": "True"}), ALLOCATED_AT + MINUTE
    assert judge_claims(a_node(), a_class(), claim, now=now).get_reasons() == NOT_ON_NODE
    gates = Gates(binding_conditions=False)
    assert judge_claims(a_node(), a_class(), claim, now=now, gates=gates).get_reasons() == ()


def judge_two(*others: Object) -> JudgedClaims:
    """Judge a pod with a claim that has a device of another node, and one that needs a device."""
    status = an_allocation("gpu-0", node="n2")
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    return judge_claims(
        a_node(), a_class(), a_claim(status=status), a_claim(name="c1"), *others, pod=a_pod_with("c0", "c1")
    )


def test_a_node_that_an_allocated_claim_does_not_reach_names_it_where_devices_are_found() -> None:
    judged = judge_two(a_slice(a_device("gpu-0")))
    verdict = judged.judge.judge(judged.snapshot.nodes["n1"].node)
    assert verdict.refusal is not None
    assert (verdict.refusal.reasons, verdict.refusal.code, verdict.unavailable) == (
        NOT_ON_NODE, StatusCode.UNRESOLVABLE, (0,)
    )  # fmt: skip


def test_a_missing_device_comes_before_a_claim_that_is_elsewhere() -> None:
    assert judge_two().get_reasons() == ("cannot allocate all claims",)


def test_a_pod_without_claims_passes_everywhere() -> None:
    judged = judge_claims(a_node(), pod=a_pod_with())
    assert judged.get_reasons() == ()
    assert judged.judge.allocate(judged.snapshot.nodes["n1"].node) == ()


@pytest.mark.parametrize(
    ("device", "cause"),
    [
        (a_device("a", taints="all"), "ResourceSlice n1-slice: spec.devices[0].taints is 'all', not a list"),
        (a_device("a", nodeName=7), "ResourceSlice n1-slice: spec.devices[0].nodeName is 7, not a string"),
    ],
)
def test_a_malformed_device_leaves_the_node_open_with_its_place(device: Object, cause: str) -> None:
    assert judge_claims(a_node(), a_class(), a_slice(device), a_claim()).get_cause() == cause


def test_a_selector_that_is_not_judged_leaves_the_node_open() -> None:
    long = a_claim(a_request("true" + " " * 10_240))
    cause = judge_claims(a_node(), a_class(), a_slice(a_device("a")), long).get_cause()
    assert cause.startswith("claim default/c0: selector #0 is not judged: the expression has 10,244 bytes")


def test_an_error_is_not_remembered_for_other_nodes() -> None:
    failing = "device.attributes['gpu.nvidia.com'].rack == 'r1'"
    nodes = [part for name in ("n1", "n2") for part in (a_node(name), a_slice(a_device("a"), node=name))]
    judged = judge_claims(*nodes, a_class(), a_claim(a_request(failing)))
    cause = "claim default/c0: selector #0: CEL runtime error: no such key: rack"
    for name in ("n1", "n2"):
        verdict = judged.judge.judge(judged.snapshot.nodes[name].node)
        assert verdict.refusal is not None
        assert (verdict.refusal.code, verdict.refusal.reasons) == (StatusCode.ERROR, (cause,))


def test_an_allocation_names_request_device_and_share() -> None:
    shared = a_device("a", "40Gi", allowMultipleAllocations=True)
    watching = a_request(name="r1", adminAccess=True, capacity={"requests": {"memory": "30Gi"}})
    claim = a_claim(a_request(capacity={"requests": {"memory": "10Gi"}}), watching)
    judged = judge_claims(a_node(), a_class(), a_slice(shared), claim)
    (allocation,) = ClaimsJudge(judged.judge.inventory, judged.judge.pod_claims).allocate(
        judged.snapshot.nodes["n1"].node
    )
    assert allocation.claim == "c0"
    assert [
        (grant.request, grant.driver, grant.pool, grant.device, str(grant.consumed["memory"]), grant.has_admin_access)
        for grant in allocation.devices
    ] == [("r0", "gpu.nvidia.com", "n1", "a", "10Gi", False), ("r1", "gpu.nvidia.com", "n1", "a", "30Gi", True)]
