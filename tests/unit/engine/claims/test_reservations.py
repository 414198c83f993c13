"""Devices that a search takes and gives back, with the cause where it may not take one.

Expected values: the order of kube-scheduler's checks of one device (in use, counters, taints, constraints, capacity)
and the meanings that resource.k8s.io/v1 gives to the fields.
"""

from dataclasses import replace
from typing import Any

import pytest

from engine.claims.capacity import Shortage
from engine.claims.constraints import Conflict
from engine.claims.counters import CounterAvailability, CounterShortage
from engine.claims.device_details import DeviceTaint
from engine.claims.gates import DEFAULT_GATES, Gates
from engine.claims.inventory import read_inventory
from engine.claims.matching import DeviceMatcher
from engine.claims.pools import collect_pools
from engine.claims.request_plans import AskedClaim, SearchSpace, list_candidates, plan_claims
from engine.claims.requests import read_claim_spec
from engine.claims.reservations import Refusal, Reservations, TakenDevice
from engine.snapshot.reading import read_snapshot
from tests.support.builders.claims import a_claim, a_class, a_device, a_request, a_slice, an_allocation
from tests.support.builders.cluster import Object, a_node

GIBI = 2**30 * 10**9
"""A gibibyte in billionths, as amounts are counted."""
SHARED: Object = {"allowMultipleAllocations": True}
COUNTERS = [{"counterSet": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
COUNTER_SETS = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]
TAINTS = [{"key": "broken", "effect": "NoSchedule"}]


class Trial:
    """Reservations of claims c0, c1, … of one pod on one node."""

    def __init__(
        self, devices: list[Object], *claims: Object, others: tuple[Object, ...] = (), gates: Gates = DEFAULT_GATES
    ) -> None:
        slices = [a_slice(*devices, name="devices")]
        if any("consumesCounters" in device for device in devices):
            slices.append(a_slice(name="counters", sharedCounters=COUNTER_SETS))
        for slice_ in slices:
            slice_["spec"]["pool"]["resourceSliceCount"] = len(slices)
        snapshot = read_snapshot([a_node(), a_class(), *slices, *others])
        assert not snapshot.rejected
        inventory = read_inventory(snapshot, gates)
        assert not inventory.rejected
        node = snapshot.nodes["n1"].node
        pools = collect_pools(inventory, node)
        candidates = list_candidates(pools)
        space = SearchSpace(inventory, DeviceMatcher(inventory), node, pools, candidates)
        specs = [read_claim_spec(claim["spec"]) for claim in claims]
        self.plans = plan_claims(space, [AskedClaim(f"default/c{number}", spec) for number, spec in enumerate(specs)])
        self.candidates = {candidate.device.name: candidate for candidate in candidates}
        self.reservations = Reservations(space, self.plans, CounterAvailability(inventory))

    def reserve(self, device: str, claim: int = 0, request: int = 0) -> Any:
        plan = self.plans[claim].groups[request][0]
        return self.reservations.reserve(claim, plan, self.candidates[device])

    def take(self, device: str, claim: int = 0, request: int = 0) -> Any:
        reservation = self.reserve(device, claim, request)
        assert not isinstance(reservation, Refusal), reservation
        return reservation

    def find_user(self, device: str, claim: int = 0, request: int = 0) -> TakenDevice | None:
        plan = self.plans[claim].groups[request][0]
        return self.reservations.find_user(claim, plan.request, self.candidates[device].id)

    def find_shortage(self, device: str, claim: int = 0) -> Shortage | None:
        plan = self.plans[claim].groups[0][0]
        return self.reservations.find_capacity_shortage(plan.request, self.candidates[device])

    def list_granted(self) -> list[list[str]]:
        return [[granted.candidate.device.name for granted in devices] for devices in self.reservations.granted]


def ask_amount(memory: str) -> Object:
    return a_claim(a_request(capacity={"requests": {"memory": memory}}))


def hold(device: str, **result: Any) -> Object:
    return a_claim(name="held", status=an_allocation(device, **result))


def test_a_device_is_taken_once() -> None:
    trial = Trial([a_device("g0"), a_device("g1")], a_claim(), a_claim(name="c1"))
    assert trial.find_user("g0") is None
    trial.take("g0")
    assert trial.list_granted() == [["g0"], []]
    assert trial.find_user("g0") == TakenDevice("default/c0")
    assert trial.reserve("g0") == trial.reserve("g0", claim=1) == TakenDevice("default/c0")
    trial.take("g1", claim=1)
    assert trial.list_granted() == [["g0"], ["g1"]]
    assert trial.reserve("g1") == TakenDevice("default/c1")


def test_a_device_that_is_given_back_is_free() -> None:
    trial = Trial([a_device("g0"), a_device("g1")], a_claim())
    trial.take("g1")
    reservation = trial.take("g0")
    trial.reservations.undo(reservation)
    assert trial.list_granted() == [["g1"]]
    assert trial.find_user("g0") is None
    trial.take("g0")
    assert trial.list_granted() == [["g1", "g0"]]


def test_a_device_of_another_claim_is_in_use() -> None:
    trial = Trial([a_device("g0"), a_device("g1")], a_claim(), others=(hold("g0"),))
    assert trial.reserve("g0") == TakenDevice("default/held")
    assert trial.list_granted() == [[]]
    trial.take("g1")


def test_access_next_to_others_takes_each_device_once_for_a_claim() -> None:
    admin = a_request(adminAccess=True)
    trial = Trial([a_device("g0"), a_device("g1")], a_claim(admin), a_claim(admin), a_claim(), others=(hold("g1"),))
    trial.take("g0")
    assert trial.find_user("g0") == TakenDevice("default/c0")
    assert trial.reserve("g0") == TakenDevice("default/c0")
    # Neither another claim of the pod nor the holder keeps it from monitoring a device.
    assert trial.find_user("g0", claim=1) is None
    trial.take("g0", claim=1)
    trial.take("g1", claim=1)
    # An exclusive request meets the first of the claims that have the device.
    assert trial.reserve("g0", claim=2) == TakenDevice("default/c0")
    assert trial.list_granted() == [["g0"], ["g0", "g1"], []]


def test_a_claim_that_gives_a_device_back_leaves_it_to_the_other_one() -> None:
    admin = a_request(adminAccess=True)
    trial = Trial([a_device("g0")], a_claim(admin), a_claim(admin), a_claim())
    first = trial.take("g0")
    trial.take("g0", claim=1)
    trial.reservations.undo(first)
    assert trial.find_user("g0") is None
    assert trial.reserve("g0", claim=2) == TakenDevice("default/c1")


def test_a_shared_device_is_taken_for_as_many_as_its_capacity_allows() -> None:
    trial = Trial([a_device("g0", "40Gi", **SHARED)], ask_amount("30Gi"), ask_amount("10Gi"), ask_amount("1Gi"))
    trial.take("g0")
    assert trial.find_user("g0", claim=1) is None
    assert trial.find_shortage("g0", claim=1) is None
    second = trial.take("g0", claim=1)
    shortage = Shortage("memory", amount=GIBI, left=0, total=40 * GIBI)
    assert trial.find_shortage("g0", claim=2) == shortage
    assert trial.reserve("g0", claim=2) == shortage
    assert trial.list_granted() == [["g0"], ["g0"], []]
    assert [
        {name: str(amount) for name, amount in (granted[0].consumed or {}).items()}
        for granted in trial.reservations.granted[:2]
    ] == [{"memory": "30Gi"}, {"memory": "10Gi"}]
    trial.reservations.undo(second)
    assert trial.find_shortage("g0", claim=1) is None
    trial.take("g0", claim=2)


def test_a_share_that_is_given_back_leaves_the_others() -> None:
    trial = Trial([a_device("g0", "40Gi", **SHARED)], ask_amount("30Gi"), ask_amount("10Gi"), ask_amount("11Gi"))
    first = trial.take("g0")
    trial.take("g0", claim=1)
    trial.reservations.undo(first)
    trial.take("g0")
    assert trial.find_shortage("g0", claim=2) == Shortage("memory", amount=11 * GIBI, left=0, total=40 * GIBI)


def test_capacity_that_claims_of_others_take_counts() -> None:
    held = hold("g0", shareID="s", consumedCapacity={"memory": "35Gi"})
    trial = Trial([a_device("g0", "40Gi", **SHARED)], ask_amount("5Gi"), ask_amount("6Gi"), others=(held,))
    assert trial.find_shortage("g0") is None
    assert trial.reserve("g0", claim=1) == Shortage("memory", amount=6 * GIBI, left=5 * GIBI, total=40 * GIBI)
    trial.take("g0")


def test_a_shared_device_may_be_taken_twice_for_access_next_to_others() -> None:
    claim = a_claim(a_request(adminAccess=True, capacity={"requests": {"memory": "10Gi"}}))
    trial = Trial([a_device("g0", "40Gi", **SHARED)], claim)
    trial.take("g0")
    trial.take("g0")
    assert trial.list_granted() == [["g0", "g0"]]


def test_a_device_that_is_not_shared_gives_all_of_its_capacity() -> None:
    trial = Trial([a_device("g0", "40Gi")], ask_amount("40Gi"), ask_amount("41Gi"), a_claim(), ask_amount("1Gi"))
    assert trial.find_shortage("g0") is None
    assert trial.find_shortage("g0", claim=1) == Shortage("memory", amount=41 * GIBI, left=40 * GIBI, total=40 * GIBI)
    assert trial.find_shortage("g0", claim=2) is None
    trial.take("g0", claim=3)
    assert trial.reservations.granted[3][0].consumed is None
    assert trial.reserve("g0", claim=3) == TakenDevice("default/c3")


def test_a_capacity_that_the_device_lacks_is_missing() -> None:
    claim = a_claim(a_request(capacity={"requests": {"slots": "1"}}))
    trial = Trial([a_device("g0", "40Gi")], claim)
    shortage = Shortage("slots", is_undefined=True)
    assert trial.find_shortage("g0") == trial.reserve("g0") == shortage
    # Nothing of the attempt remains.
    assert trial.find_user("g0") is None
    assert trial.list_granted() == [[]]


def test_without_the_gate_of_capacity_no_device_is_shared() -> None:
    gates = replace(DEFAULT_GATES, consumable_capacity=False)
    trial = Trial([a_device("g0", "40Gi", **SHARED)], a_claim(), a_claim(name="c1"), gates=gates)
    assert trial.find_shortage("g0") is None
    trial.take("g0")
    assert trial.reserve("g0", claim=1) == TakenDevice("default/c0")
    assert trial.reservations.granted[0][0].consumed is None


def test_devices_share_the_counters_of_their_pool() -> None:
    devices = [a_device(name, consumesCounters=COUNTERS) for name in ("g0", "g1", "g2")]
    trial = Trial(devices, a_claim())
    trial.take("g0")
    second = trial.take("g1")
    assert trial.reserve("g2") == CounterShortage("gpu", "memory", 40 * GIBI, 0)
    assert trial.find_user("g2") is None
    trial.reservations.undo(second)
    trial.take("g2")
    assert trial.list_granted() == [["g0", "g2"]]


def test_a_refusal_gives_the_counters_back() -> None:
    devices = [
        a_device("g0", consumesCounters=COUNTERS, taints=TAINTS),
        a_device("g1", consumesCounters=COUNTERS),
        a_device("g2", consumesCounters=COUNTERS),
    ]
    trial = Trial(devices, a_claim())
    assert trial.reserve("g0") == DeviceTaint("broken", "", "NoSchedule")
    trial.take("g1")
    trial.take("g2")


def test_counters_come_before_taints() -> None:
    devices = [
        a_device("g0", consumesCounters=COUNTERS),
        a_device("g1", consumesCounters=COUNTERS),
        a_device("g2", consumesCounters=COUNTERS, taints=TAINTS),
    ]
    trial = Trial(devices, a_claim())
    trial.take("g0")
    trial.take("g1")
    assert trial.reserve("g2") == CounterShortage("gpu", "memory", 40 * GIBI, 0)
    assert trial.reserve("g0") == TakenDevice("default/c0")


def test_the_first_share_of_a_device_takes_its_counters() -> None:
    devices = [a_device(name, "40Gi", consumesCounters=COUNTERS, **SHARED) for name in ("g0", "g1", "g2")]
    trial = Trial(devices, ask_amount("10Gi"), ask_amount("10Gi"))
    first = trial.take("g0")
    second = trial.take("g0")
    trial.take("g1", claim=1)
    assert trial.reserve("g2") == CounterShortage("gpu", "memory", 40 * GIBI, 0)
    trial.reservations.undo(second)
    assert trial.reserve("g2") == CounterShortage("gpu", "memory", 40 * GIBI, 0)
    trial.reservations.undo(first)
    trial.take("g2")


def test_a_device_without_capacity_takes_its_counters_with_its_first_share() -> None:
    devices = [a_device(name, consumesCounters=COUNTERS, **SHARED) for name in ("g0", "g1", "g2")]
    trial = Trial(devices, a_claim(), a_claim(name="c1"))
    first = trial.take("g0")
    second = trial.take("g0")
    trial.reservations.undo(second)
    third = trial.take("g0")
    trial.take("g1", claim=1)
    assert trial.reserve("g2") == CounterShortage("gpu", "memory", 40 * GIBI, 0)
    trial.reservations.undo(third)
    trial.reservations.undo(first)
    # The counters are free again, and the next share takes them again.
    trial.take("g0")
    assert trial.reserve("g2") == CounterShortage("gpu", "memory", 40 * GIBI, 0)


def test_a_device_with_shares_of_other_claims_has_its_counters() -> None:
    devices = [a_device(name, "40Gi", consumesCounters=COUNTERS, **SHARED) for name in ("g0", "g1", "g2")]
    held = hold("g0", shareID="s", consumedCapacity={"memory": "1Gi"})
    trial = Trial(devices, ask_amount("10Gi"), others=(held,))
    # 40 of 80 gibibytes are left: the shares of g0 need no more of them.
    trial.take("g1")
    trial.take("g0")
    assert trial.reserve("g2") == CounterShortage("gpu", "memory", 40 * GIBI, 0)


def test_without_the_gate_a_device_with_counters_is_not_taken() -> None:
    gates = replace(DEFAULT_GATES, partitionable_devices=False)
    trial = Trial([a_device("g0", consumesCounters=COUNTERS), a_device("g1", taints=[])], a_claim(), gates=gates)
    assert trial.reserve("g0") == CounterShortage("", "", 0, 0)
    trial.take("g1")


@pytest.mark.parametrize(
    ("taints", "tolerations", "gates", "taint"),
    [
        (TAINTS, [], DEFAULT_GATES, DeviceTaint("broken", "", "NoSchedule")),
        (TAINTS, [{"key": "broken", "operator": "Exists"}], DEFAULT_GATES, None),
        (TAINTS, [], replace(DEFAULT_GATES, device_taints=False), None),
        ([{"key": "broken", "effect": "None"}, *TAINTS], [], DEFAULT_GATES, DeviceTaint("broken", "", "NoSchedule")),
        ([], [], DEFAULT_GATES, None),
    ],
)
def test_a_taint_that_is_not_tolerated_refuses_a_device(
    taints: list[Object], tolerations: list[Object], gates: Gates, taint: DeviceTaint | None
) -> None:
    trial = Trial([a_device("g0", taints=taints)], a_claim(a_request(tolerations=tolerations)), gates=gates)
    reservation = trial.reserve("g0")
    if taint:
        assert reservation == taint
    assert trial.list_granted() == [[] if taint else ["g0"]]


def test_a_rule_of_an_administrator_taints_a_plain_device() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "drain"},
        "spec": {"deviceSelector": {"device": "g0"}, "taint": {"key": "broken", "effect": "NoSchedule"}},
    }
    gates = replace(DEFAULT_GATES, device_taint_rules=True)
    trial = Trial([a_device("g0"), a_device("g1")], a_claim(), others=(rule,), gates=gates)
    assert trial.reserve("g0") == DeviceTaint("broken", "", "NoSchedule", "drain")
    trial.take("g1")
    assert not isinstance(Trial([a_device("g0")], a_claim(), others=(rule,)).reserve("g0"), Refusal)


NUMA = "gpu.nvidia.com/numa"


def build_numa_devices(*numbers: int) -> list[Object]:
    return [a_device(f"g{position}", attributes={"numa": number}) for position, number in enumerate(numbers)]


def test_devices_that_have_to_match_share_a_value() -> None:
    claim = a_claim(a_request(count=3), constraints=[{"matchAttribute": NUMA}])
    trial = Trial([*build_numa_devices(0, 1, 0), a_device("g3")], claim)
    first = trial.take("g0")
    conflict = trial.reserve("g1")
    assert isinstance(conflict, Conflict)
    assert (conflict.value, conflict.others) == (("int", 1), (("int", 0),))
    lacking = trial.reserve("g3")
    assert isinstance(lacking, Conflict)
    assert lacking.value is None
    trial.take("g2")
    assert trial.list_granted() == [["g0", "g2"]]
    assert trial.find_user("g1") is None
    assert first.is_granted


def test_a_constraint_is_free_again_without_its_devices() -> None:
    constraints = [{"matchAttribute": NUMA}, {"distinctAttribute": "gpu.nvidia.com/name"}]
    devices = [
        a_device("g0", attributes={"numa": 0, "name": "a"}),
        a_device("g1", attributes={"numa": 1, "name": "b"}),
        a_device("g2", attributes={"numa": 1, "name": "b"}),
    ]
    trial = Trial(devices, a_claim(a_request(name="r0"), a_request(name="r1"), constraints=constraints))
    first = trial.take("g0")
    # g1 meets no constraint, and leaves none counted.
    assert isinstance(trial.reserve("g1", request=1), Conflict)
    trial.reservations.undo(first)
    trial.take("g1")
    # g2 meets the first constraint and fails the second.
    conflict = trial.reserve("g2", request=1)
    assert isinstance(conflict, Conflict)
    assert conflict.spec.kind == "distinctAttribute"
    assert trial.list_granted() == [["g1"]]


def test_a_constraint_that_was_met_before_a_conflict_is_given_back() -> None:
    constraints = [{"matchAttribute": NUMA}, {"matchAttribute": "gpu.nvidia.com/name"}]
    devices = [a_device("g0", attributes={"numa": 0}), a_device("g1", attributes={"numa": 1, "name": "a"})]
    trial = Trial(devices, a_claim(constraints=constraints))
    assert isinstance(trial.reserve("g0"), Conflict)
    # Had g0 counted for the first constraint, g1 would not match it.
    trial.take("g1")


def test_claims_have_constraints_of_their_own() -> None:
    constraints = [{"matchAttribute": NUMA}]
    trial = Trial(
        build_numa_devices(0, 1), a_claim(constraints=constraints), a_claim(constraints=constraints, name="c1")
    )
    trial.take("g0")
    trial.take("g1", claim=1)
    assert trial.list_granted() == [["g0"], ["g1"]]
