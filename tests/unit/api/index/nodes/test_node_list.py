"""Free devices of a node of the list: by hand, from the amounts held."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.http.cluster import Cluster
from api.index.nodes.node_list import NodeRecords, parse_locks, to_listed_node
from schemas.answers.nodes import NodeListed
from schemas.documents.observations import Observed
from schemas.events import Condition, DeviceAllocation, NodeChecked, NodeObserved, NodeProblem, NodeRegistered, PodRef
from schemas.placements import PodPlacement

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_registered_node(
    memory: list[int], healthy: list[bool] | None = None, cordoned: tuple[int, ...] = ()
) -> NodeRegistered:
    count = len(memory)
    return NodeRegistered(
        cluster="default", node="node1", observed_at=NOON, scheduler="hami-scheduler", registered=True,
        uuid=[f"GPU-{number}" for number in range(count)], model=["A100"] * count, mode=["hami-core"] * count,
        index=list(range(count)), memory_mib=memory, cores_percent=[100] * count, slots=[10] * count,
        numa=[0] * count, healthy=healthy or [True] * count,
        cordoned=[f"GPU-{number}" for number in cordoned],
    )  # fmt: skip


def a_pod_holding(device: int, memory_mib: int | None) -> PodPlacement:
    allocation = DeviceAllocation(uuid=f"GPU-{device}", container="main", memory_mib=memory_mib)
    return PodPlacement(
        cluster="default", id=f"p{device}", pod=PodRef(namespace="llm", name=f"p{device}"), node="node1",
        started_at=NOON, allocations=[allocation],
    )  # fmt: skip


def list_node(*observed: Observed, placements: tuple[PodPlacement, ...] = ()) -> NodeListed:
    return to_listed_node(Cluster("default"), "node1", NodeRecords(observed, placements, None), NOON)


@pytest.mark.parametrize(
    ("memory", "held_mib", "expected"),
    [
        # Devices, then: free devices, free memory, the most on one device, the share in pieces.
        ([100, 100], {}, (2, 200, 100, 0.0)),
        ([100, 100], {0: 40}, (1, 160, 100, 0.375)),
        ([100, 100], {0: 40, 1: 80}, (0, 80, 60, 1.0)),
        ([100, 100], {0: 100, 1: 100}, (0, 0, 0, 0.0)),
        ([100, 100], {0: 130}, (1, 100, 100, 0.0)),
        ([100, 100], {0: None}, (1, None, None, None)),
        ([], {}, (0, None, None, None)),
    ],
)
def test_free_memory_is_what_is_registered_and_not_held(
    memory: list[int], held_mib: dict[int, int | None], expected: tuple[Any, ...]
) -> None:
    placements = tuple(a_pod_holding(device, amount) for device, amount in held_mib.items())
    node = list_node(a_registered_node(memory), placements=placements)
    assert (node.free_devices, node.memory_free_mib, node.largest_free_mib, node.fragmentation) == expected
    assert (node.devices, node.pods) == (len(memory), len(placements))


def test_nothing_is_free_on_a_device_that_is_not_healthy() -> None:
    node = list_node(a_registered_node([100, 100], healthy=[True, False]))
    assert (node.devices, node.unhealthy_devices, node.free_devices, node.memory_free_mib) == (2, 1, 1, 100)


def test_nothing_is_free_on_a_device_that_is_cordoned() -> None:
    node = list_node(a_registered_node([100, 100, 100], cordoned=(1, 2)), placements=(a_pod_holding(2, 40),))
    assert (node.devices, node.cordoned_devices, node.free_devices) == (3, 2, 1)
    assert (node.memory_free_mib, node.largest_free_mib, node.fragmentation) == (100, 100, 0.0)


@pytest.mark.parametrize(("unschedulable", "free"), [(False, (1, 160, 100, 0.375)), (True, (0, 0, 0, 0.0))])
def test_nothing_is_free_on_a_cordoned_node(unschedulable: bool, free: tuple[Any, ...]) -> None:
    earlier, later = (
        NodeObserved(cluster="default", node="node1", observed_at=observed_at, unschedulable=cordoned)
        for observed_at, cordoned in ((NOON, not unschedulable), (NOON + timedelta(seconds=1), unschedulable))
    )
    node = list_node(a_registered_node([100, 100]), later, earlier, placements=(a_pod_holding(0, 40),))
    assert node.cordoned is unschedulable
    assert (node.free_devices, node.memory_free_mib, node.largest_free_mib, node.fragmentation) == free
    assert (node.devices, node.pods) == (2, 1)


def test_whether_a_node_is_cordoned_is_not_known_without_its_status() -> None:
    assert list_node(a_registered_node([100])).cordoned is None


def test_a_node_has_its_registrations_problems_and_readiness() -> None:
    problem = NodeProblem(code="HandshakeTooOld", message="61 s old")
    node = list_node(
        a_registered_node([100]),
        NodeChecked(cluster="default", node="node1", observed_at=NOON, problems=[problem]),
        NodeObserved(
            cluster="default", node="node1", observed_at=NOON, conditions=[Condition(type="Ready", status="True")]
        ),
    )
    assert ([registration.reported_by for registration in node.registrations], node.problems) == (
        ["hami-scheduler"],
        [problem],
    )
    assert (node.ready, node.occupancy) == ("True", "/api/v1/nodes/node1/occupancy")


def test_the_lock_of_a_node_is_that_of_its_latest_failed_bind() -> None:
    holder = {"pod": "llm/qwen-0", "locked_at": "2026-11-21T11:59:00Z"}
    bind = {
        "node": "node1",
        "bound": False,
        "error": "locked",
        "lock_holder": holder,
        "ended_at": "2026-11-21T12:00:00Z",
    }

    def build_bucket(node: str, bind: dict[str, Any]) -> dict[str, Any]:
        return {"key": node, "latest": {"hits": {"hits": [{"_source": {"summary": {"bind": bind}}}]}}}

    buckets = [build_bucket("node1", bind), build_bucket("node2", bind | {"lock_holder": None})]
    locks = parse_locks({"aggregations": {"nodes": {"buckets": buckets}}})
    assert list(locks) == ["node1"]
    assert (locks["node1"].pod, locks["node1"].locked_at) == ("llm/qwen-0", "2026-11-21T11:59:00.000000Z")
