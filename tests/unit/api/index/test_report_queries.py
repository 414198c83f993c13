"""Free devices and memory, and the part of it that fits no waiting pod; waits of placed pods."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.index.report_queries import build_placed_query, measure_fragmentation, parse_placed, parse_usage
from schemas.documents.placements import build_placement_document
from schemas.events import DeviceAllocation, NodeStateChanged, PodRef
from schemas.json_types import Json
from schemas.placements import PodPlacement
from tests.support.builders.kube_objects import STARTED


def a_state(node: str, used: list[int], *, slots: list[int], healthy: bool = True) -> NodeStateChanged:
    size = len(used)
    return NodeStateChanged.model_validate(
        {
            "cluster": "default",
            "node": node,
            "observed_at": STARTED,
            "scheduler": "hami-scheduler",
            "epoch": 1,
            "revision": 1,
            "kinds": [{"model": "NVIDIA A100", "vendor": "NVIDIA", "memory_mib": 10_000}],
            "uuid": [f"{node}-{number}" for number in range(size)],
            "kind": [0] * size,
            "index": list(range(size)),
            "numa": [0] * size,
            "healthy": [healthy] * size,
            "cordoned": [False] * size,
            "memory_used_mib": used,
            "cores_used_percent": [0] * size,
            "slots_used": slots,
        }
    )


def test_free_memory_is_added_up_over_the_devices_that_can_be_given() -> None:
    states = [a_state("a", [0, 9_000, 4_000], slots=[0, 1, 1]), a_state("b", [0], slots=[0], healthy=False)]
    fragmentation = measure_fragmentation(states, 3_000)
    assert (fragmentation.nodes, fragmentation.devices, fragmentation.free_devices) == (2, 3, 1)
    # 10,000 on the idle one, 1,000 and 6,000 on those that are shared; 1,000 is less than anybody asks for.
    assert (fragmentation.free_memory_mib, fragmentation.free_memory_on_shared_mib, fragmentation.too_small_mib) == (
        17_000,
        7_000,
        1_000,
    )


def test_what_is_free_on_a_cordoned_node_is_not_counted() -> None:
    states = [a_state("a", [0, 4_000], slots=[0, 1]), a_state("b", [0], slots=[0])]
    fragmentation = measure_fragmentation(states, None, frozenset({"b"}))
    assert (fragmentation.nodes, fragmentation.devices, fragmentation.free_devices) == (2, 2, 1)
    assert (fragmentation.free_memory_mib, fragmentation.free_memory_on_shared_mib) == (16_000, 6_000)


def test_without_waiting_pods_nothing_is_too_small() -> None:
    fragmentation = measure_fragmentation([a_state("a", [9_999], slots=[1])], None)
    assert (fragmentation.smallest_asked_mib, fragmentation.too_small_mib) == (None, None)


def test_a_device_of_which_the_use_is_not_reported_is_left_out() -> None:
    assert measure_fragmentation([a_state("a", [-1], slots=[-1])], 1).devices == 0


def test_a_namespace_that_only_waits_or_only_holds_has_a_row_as_well() -> None:
    def answer(**buckets: object) -> Json:
        rows = [{"key": name, **numbers} for name, numbers in buckets.items() if isinstance(numbers, dict)]
        return {"aggregations": {"namespaces": {"buckets": rows}}}

    held = answer(holds={"held": {"value": 7200.0}, "present": {"devices": {"value": 3}}})
    waiting = answer(waits={"doc_count": 2, "devices": {"value": 4.0}, "began": {"value": 4.0 * 1_000}})
    placed = answer(waits={"waited": {"value": 1800.0}})
    rows = [tuple(usage.model_dump().values()) for usage in parse_usage(held, waiting, placed, 4_600.0)]
    assert rows == [("holds", 3, 2.0, 0, 0.0, 0.0), ("waits", 0, 0.0, 2, 4.0, 0.5)]


MEMORY, NUMA = "CardInsufficientMemory", "NumaNotFit"


@st.composite
def placements(draw: st.DrawFn) -> PodPlacement:
    """Placements with and without a known wait; those of earlier versions have reasons without an obstacle."""
    reasons = draw(st.lists(st.sampled_from([MEMORY, NUMA, "CardNotHealth"]), unique=True))
    seconds = draw(st.none() | st.integers(0, 100_000))
    return PodPlacement(
        id="id",
        cluster="default",
        pod=PodRef(namespace="llm", name="train-0", uid="uid"),
        node="node1",
        started_at=STARTED,
        bound_at=STARTED,
        first_judged_at=None if seconds is None else STARTED - timedelta(seconds=seconds),
        waited_for=sorted(reasons),
        obstacle=draw(st.sampled_from(["", *reasons])),
        allocations=[
            DeviceAllocation(uuid=f"GPU-{number}", container="main") for number in range(draw(st.integers(0, 8)))
        ],
    )


def aggregate(documents: Sequence[Json], body: Json) -> Json:
    """Answer a search as OpenSearch does: a document is in the bucket of each of its values."""
    waited = [(document["placement_seconds"] or 0) * len(document["devices"]) for document in documents]
    terms = body["aggs"]["causes"]["terms"]
    buckets: dict[str, Json] = {}
    for document, seconds in zip(documents, waited, strict=True):
        values = document[terms["field"]]
        listed = values if isinstance(values, list) else [] if values is None else [values]
        for value in listed or ([terms["missing"]] if "missing" in terms else []):
            bucket = buckets.setdefault(value, {"key": value, "doc_count": 0, "waited": {"value": 0.0}})
            bucket["doc_count"] += 1
            bucket["waited"]["value"] += seconds
    aggregations = {"causes": {"buckets": list(buckets.values())}, "waited": {"value": sum(waited)}}
    return {"hits": {"total": {"value": len(documents)}}, "aggregations": aggregations}


@given(st.lists(placements(), max_size=12))
def test_hours_by_cause_add_up_to_the_hours_of_all(placed: list[PodPlacement]) -> None:
    documents = [build_placement_document(placement, {}) for placement in placed]
    waited = parse_placed(aggregate(documents, build_placed_query("default", None, "now-1d", "now")))
    # Each number is rounded to thousandths.
    assert sum(cause.gpu_hours for cause in waited.causes) == pytest.approx(waited.gpu_hours, abs=0.0005 * 5)
    for cause in waited.causes:
        charged = [placement for placement in placed if placement.obstacle == cause.cause]
        hours = sum((placement.placement_seconds or 0) * len(placement.allocations) for placement in charged) / 3600
        assert cause.pods == len(charged)
        assert cause.gpu_hours == pytest.approx(hours, abs=0.0006)
    assert {placement.obstacle for placement in placed} - {""} <= {cause.cause for cause in waited.causes}
