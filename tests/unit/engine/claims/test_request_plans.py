"""Plans of searches, and errors of kube-scheduler before it looks for devices.

The texts are kube-scheduler's (k8s.io/dynamic-resource-allocation, structured allocator); fields of ResourceClaims have
the meanings that resource.k8s.io/v1 gives them.
"""

from dataclasses import replace
from typing import Any

import pytest

from engine.claims.gates import DEFAULT_GATES, Gates
from engine.claims.inventory import read_inventory
from engine.claims.matching import DeviceMatcher
from engine.claims.pools import collect_pools
from engine.claims.request_plans import (
    AskedClaim,
    Candidate,
    ClaimPlan,
    DeviceSearchError,
    SearchSpace,
    list_candidates,
    plan_claims,
)
from engine.claims.requests import read_claim_spec
from engine.claims.slices import Pool, PoolState
from engine.snapshot.reading import read_snapshot
from tests.support.builders.claims import a_claim, a_class, a_device, a_request, a_slice, an_allocation
from tests.support.builders.cluster import Object, a_node

EVEN = "device.attributes['gpu.nvidia.com'].index % 2 == 0"
FOUR = [a_device(f"g{index}", "40Gi", {"index": index}) for index in range(4)]


def build_space(
    *slices: Object,
    others: tuple[Object, ...] = (),
    gates: Gates = DEFAULT_GATES,
    classes: tuple[Object, ...] = (a_class(),),
) -> SearchSpace:
    snapshot = read_snapshot([a_node(), *classes, *(slices or (a_slice(*FOUR),)), *others])
    assert not snapshot.rejected
    inventory = read_inventory(snapshot, gates)
    assert not inventory.rejected
    node = snapshot.nodes["n1"].node
    pools = collect_pools(inventory, node)
    current = tuple(pool for pool in pools if pool.state is not PoolState.OUTDATED)
    return SearchSpace(inventory, DeviceMatcher(inventory), node, current, list_candidates(current))


def plan(space: SearchSpace, *claims: Object) -> tuple[ClaimPlan, ...]:
    return plan_claims(
        space, [AskedClaim(f"team/c{number}", read_claim_spec(claim["spec"])) for number, claim in enumerate(claims)]
    )


def fail(space: SearchSpace, *claims: Object) -> str:
    with pytest.raises(DeviceSearchError) as raised:
        plan(space, *claims)
    return str(raised.value)


def an_alternative(name: str, *expressions: str, **fields: Any) -> Object:
    return {"name": name, **a_request(*expressions, **fields)["exactly"]}


def a_choice(*alternatives: Object) -> Object:
    return {"name": "r0", "firstAvailable": list(alternatives)}


def list_names(candidates: tuple[Candidate, ...] | None) -> list[str]:
    return [candidate.device.name for candidate in candidates or ()]


def test_candidates_follow_pools_slices_and_devices_in_their_order() -> None:
    slices = [
        a_slice(a_device("a0"), a_device("a1"), name="s0", pool="p0"),
        a_slice(a_device("b0"), name="s1", pool="p1"),
        a_slice(a_device("b1"), name="s2", pool="p1"),
    ]
    for slice_ in slices[1:]:
        slice_["spec"]["pool"]["resourceSliceCount"] = 2
    candidates = build_space(*slices).candidates
    assert list_names(candidates) == ["a0", "a1", "b0", "b1"]
    assert [candidate.position for candidate in candidates] == [0, 1, 2, 3]
    assert candidates[3].id == ("gpu.nvidia.com", "p1", "b1")
    assert candidates[3].title == "gpu.nvidia.com/p1/b1"
    assert (candidates[3].slice.name, candidates[3].pool.id) == ("s2", ("gpu.nvidia.com", "p1"))


@pytest.mark.parametrize("state", [PoolState.INCOMPLETE, PoolState.INVALID, PoolState.OUTDATED])
def test_a_pool_that_is_not_usable_has_no_candidates(state: PoolState) -> None:
    (pool,) = build_space().pools
    assert list_candidates([pool._replace(state=state)]) == ()
    assert len(list_candidates([pool._replace(state=state), pool])) == 4


def test_a_claim_has_its_name_without_the_namespace() -> None:
    assert AskedClaim("team/c0", read_claim_spec({})).name == "c0"


def test_a_request_is_planned_with_its_count_and_the_selectors_of_its_class() -> None:
    space = build_space(classes=(a_class("true"),))
    claim = a_claim(a_request(EVEN, count=3), a_request(name="r1"), constraints=[{"matchAttribute": "a/b"}])
    first, second = plan(space, claim, a_claim())
    assert [[planned.count for planned in group] for group in first.groups] == [[3], [1]]
    (planned,) = first.groups[0]
    assert planned.every_device is None
    assert planned.request.name == "r0"
    assert [origin.text for origin in planned.origins] == ["class gpu: selector #0", "claim team/c0: selector #0"]
    assert [constraint.attribute for constraint in first.constraints] == ["a/b"]
    assert (second.claim.title, second.constraints) == ("team/c1", ())


def test_each_alternative_is_planned() -> None:
    (planned,) = plan(build_space(), a_claim(a_choice(an_alternative("big", count=2), an_alternative("small", EVEN))))
    (group,) = planned.groups
    assert [(choice.request.full_name, choice.count) for choice in group] == [("r0/big", 2), ("r0/small", 1)]


def test_all_devices_are_those_that_the_selectors_take() -> None:
    (planned,) = plan(build_space(), a_claim(a_request(EVEN, allocationMode="All"), a_request(allocationMode="All")))
    ((even,), (every,)) = planned.groups
    assert (even.count, list_names(even.every_device)) == (2, ["g0", "g2"])
    assert (every.count, list_names(every.every_device)) == (4, ["g0", "g1", "g2", "g3"])


def test_all_devices_are_of_every_pool() -> None:
    slices = [
        a_slice(a_device(f"d{number}"), a_device(f"e{number}"), name=f"s{number}", pool=f"p{number}")
        for number in range(3)
    ]
    (planned,) = plan(build_space(*slices), a_claim(a_request(allocationMode="All")))
    assert list_names(planned.groups[0][0].every_device) == ["d0", "e0", "d1", "e1", "d2", "e2"]


def test_all_devices_includes_those_in_use() -> None:
    held = a_claim(name="held", status=an_allocation("g0"))
    (planned,) = plan(build_space(others=(held,)), a_claim(a_request(allocationMode="All")))
    assert planned.groups[0][0].count == 4


@pytest.mark.parametrize(
    ("memory", "gates", "names"),
    [
        ("40Gi", DEFAULT_GATES, ["g0", "g1"]),
        ("30Gi", DEFAULT_GATES, ["g0", "g1", "g2"]),
        ("41Gi", DEFAULT_GATES, []),
    ],
)
def test_all_devices_are_those_with_the_capacity(memory: str, gates: Gates, names: list[str]) -> None:
    devices = [
        *FOUR[:2],
        a_device("g2", "40Gi", allowMultipleAllocations=True),
        a_device("g3", "20Gi"),
    ]
    held = a_claim(name="held", status=an_allocation("g2", shareID="s", consumedCapacity={"memory": "10Gi"}))
    claim = a_claim(a_request(allocationMode="All", capacity={"requests": {"memory": memory}}))
    (planned,) = plan(build_space(a_slice(*devices), others=(held,), gates=gates), claim)
    assert list_names(planned.groups[0][0].every_device) == names


def test_without_the_gate_of_capacity_all_devices_count() -> None:
    gates = replace(DEFAULT_GATES, consumable_capacity=False)
    devices = [a_device("g0", "40Gi", allowMultipleAllocations=True)]
    held = a_claim(name="held", status=an_allocation("g0", shareID="s", consumedCapacity={"memory": "40Gi"}))
    (planned,) = plan(
        build_space(a_slice(*devices), others=(held,), gates=gates), a_claim(a_request(allocationMode="All"))
    )
    assert planned.groups[0][0].count == 1


@pytest.mark.parametrize(("state", "words"), [(PoolState.INCOMPLETE, "being updated"), (PoolState.INVALID, "invalid")])
def test_all_devices_need_every_pool(state: PoolState, words: str) -> None:
    space = build_space()
    broken = space.pools[0]._replace(id=("gpu.nvidia.com", "p2"), state=state, slices=())
    space = replace(space, pools=(*space.pools, broken))
    assert fail(space, a_claim(a_request(allocationMode="All"))) == (
        f"claim team/c0, request r0: asks for all devices, but resource pool gpu.nvidia.com/p2 is currently {words}"
    )
    # A number of devices may come from the other pools.
    assert plan(space, a_claim())[0].groups[0][0].count == 1


def a_request_without(field: str) -> Object:
    request = a_request()
    del request["exactly"][field]
    return request


def test_a_request_has_to_be_of_a_known_type() -> None:
    assert fail(build_space(), a_claim({"name": "r0"})) == "claim team/c0, request r0: unknown request type"
    assert fail(build_space(), a_claim(), a_claim({"name": "r7"})) == "claim team/c1, request r7: unknown request type"


@pytest.mark.parametrize(
    ("request_", "cause"),
    [
        (
            a_request_without("deviceClassName"),
            "request r0: missing device class name (unsupported request type?)",
        ),
        (
            a_request(device_class="other"),
            'request r0: could not retrieve device class other: deviceclass.resource.k8s.io "other" not found',
        ),
        (a_request(allocationMode="Some"), "request r0: unsupported count mode Some"),
        (
            a_request() | {"exactly": a_request()["exactly"] | {"selectors": [{"cel": {"expression": "true"}}, {}]}},
            "request r0, selector #1: CEL expression empty (unsupported selector type?)",
        ),
    ],
)
def test_an_error_names_the_claim_and_the_request(request_: Object, cause: str) -> None:
    assert fail(build_space(), a_claim(request_)) == f"claim team/c0, {cause}"


@pytest.mark.parametrize(
    ("counts", "is_too_many"),
    [([32], False), ([33], True), ([16, 16], False), ([16, 17], True)],
)
def test_a_claim_asks_for_no_more_than_32_devices(counts: list[int], is_too_many: bool) -> None:
    claim = a_claim(*(a_request(name=f"r{number}", count=count) for number, count in enumerate(counts)))
    if is_too_many:
        total = sum(counts)
        assert fail(build_space(), claim) == (
            f"claim team/c0: number of requested devices {total} exceeds the claim limit of 32"
        )
    else:
        assert len(plan(build_space(), claim)[0].groups) == len(counts)


def test_the_smallest_alternative_counts_for_the_limit() -> None:
    choice = a_choice(an_alternative("big", count=32), an_alternative("small", count=2))
    assert plan(build_space(), a_claim(choice, a_request(name="r1", count=30)))
    assert "requested devices 33" in fail(build_space(), a_claim(choice, a_request(name="r1", count=31)))


def test_a_constraint_has_to_be_of_a_known_type() -> None:
    constraints = [{"matchAttribute": "a/b"}, {"requests": ["r0"]}]
    assert fail(build_space(), a_claim(constraints=constraints)) == (
        "claim team/c0, constraint #1: empty constraint (unsupported constraint type?)"
    )
    assert plan(build_space(), a_claim(constraints=[{"distinctAttribute": "a/b"}]))


CAPACITY: dict[str, Any] = {"capacity": {"requests": {"memory": "1Gi"}}}


@pytest.mark.parametrize(
    ("gate", "request_", "error"),
    [
        (
            "prioritized_list",
            a_choice(an_alternative("a")),
            "claim team/c0, request r0: has subrequests, but the DRAPrioritizedList feature is disabled",
        ),
        (
            "consumable_capacity",
            a_request(**CAPACITY),
            "claim team/c0, request r0: has capacity requests, but the DRAConsumableCapacity feature is disabled",
        ),
        (
            "consumable_capacity",
            a_choice(an_alternative("a"), an_alternative("b", **CAPACITY)),
            "claim team/c0, subrequest b: has capacity requests, but the DRAConsumableCapacity feature is disabled",
        ),
        (
            "admin_access",
            a_request(adminAccess=True),
            "claim team/c0, request r0: admin access is requested, but the feature is disabled",
        ),
        (
            "admin_access",
            a_request(adminAccess=False),
            "claim team/c0, request r0: admin access is requested, but the feature is disabled",
        ),
    ],
)
def test_a_request_may_need_a_feature_gate(gate: str, request_: Object, error: str) -> None:
    off = build_space(gates=replace(DEFAULT_GATES, **{gate: False}))
    assert fail(off, a_claim(request_)) == error
    assert plan(build_space(), a_claim(request_))
    assert plan(off, a_claim())


def test_a_device_with_binding_conditions_needs_their_gate() -> None:
    devices = [a_device("g0", bindingConditions=["ready"]), a_device("g1", bindingConditions=[]), a_device("g2")]
    claim = a_claim(a_request(allocationMode="All"))
    (planned,) = plan(build_space(a_slice(*devices)), claim)
    assert list_names(planned.groups[0][0].every_device) == ["g0", "g1", "g2"]
    (planned,) = plan(build_space(a_slice(*devices), gates=replace(DEFAULT_GATES, binding_conditions=False)), claim)
    assert list_names(planned.groups[0][0].every_device) == ["g1", "g2"]


def test_a_device_with_a_node_of_its_own_is_selectable_there_only() -> None:
    devices = [a_device("g0", nodeName="n1"), a_device("g1", nodeName="n2"), a_device("g2", allNodes=True)]
    slice_ = a_slice(*devices, pool="p")
    del slice_["spec"]["nodeName"]
    slice_["spec"]["perDeviceNodeSelection"] = True
    space = build_space(slice_)
    assert [space.is_selectable([], candidate) for candidate in space.candidates] == [
        candidate.device.name in ("g0", "g2") for candidate in space.candidates
    ]
    assert {"g0", "g2"} <= set(list_names(space.candidates))


def test_pools_of_the_space_are_given() -> None:
    pools: tuple[Pool, ...] = build_space().pools
    assert [pool.title for pool in pools] == ["gpu.nvidia.com/n1"]
