"""Resources that no node offers: named only where every node was read, with what nodes offer of the same vendor.

Names are those of NVIDIA's device plugin with MIG and of Ascend's. Amounts are added up by hand.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.evidence import Evidence
from engine.diagnosis.facts import DiagnosisFacts, NodeFacts, PodOnCluster
from engine.diagnosis.missing_resources import MAX_NEAREST, add_offered, describe_missing_resource
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.refused_nodes import RefusedNodes
from schemas.json_types import Json

NOW = datetime(2026, 11, 27, tzinfo=UTC)
MIG, GPU = "nvidia.com/mig-1g.10gb", "nvidia.com/gpu"


def build_facts(*amounts: Json, containers: list[Json] | None = None) -> DiagnosisFacts:
    """Build facts of nodes with these allocatable amounts, and of a pod with these containers."""
    nodes = [
        NodeFacts(f"n{number}", Evidence("node", f"/n{number}"), node={"status": {"allocatable": allocatable}})
        for number, allocatable in enumerate(amounts, 1)
    ]
    pod = PodOnCluster(Evidence("pod", "/pod"), spec={"containers": containers}) if containers else None
    return DiagnosisFacts("default", "ml", "train", NOW, nodes=nodes, pod=pod)


def describe(facts: DiagnosisFacts, resource: str = MIG, refused: int = 2, total: int = 2) -> FoundObstacle | None:
    return describe_missing_resource(
        RefusedNodes("InsufficientResource", refused, details=(resource,) if resource else ()), facts, total
    )


@pytest.mark.parametrize(
    ("amounts", "resource", "refused", "is_missing"),
    [
        ([{"cpu": "8"}, {GPU: "4"}], MIG, 2, True),
        ([{"cpu": "8"}, {MIG: "0"}], MIG, 2, True),
        ([{"cpu": "8"}, {MIG: "1"}], MIG, 2, False),
        # One node was refused for another reason, one was not read, one has no amounts: it may offer the resource.
        ([{"cpu": "8"}, {GPU: "4"}], MIG, 1, False),
        ([{"cpu": "8"}], MIG, 2, False),
        ([{"cpu": "8"}, {}], MIG, 2, False),
        # Kubernetes' own resources have no domain, and every node has them.
        ([{"memory": "8Gi"}, {"memory": "8Gi"}], "cpu", 2, False),
        ([{"cpu": "8"}, {"cpu": "8"}], "", 2, False),
    ],
)
def test_a_resource_is_missing_where_every_node_was_read_and_offers_none(
    amounts: list[Json], resource: str, refused: int, is_missing: bool
) -> None:
    assert (describe(build_facts(*amounts), resource, refused) is not None) is is_missing


@pytest.mark.parametrize(
    ("amounts", "nearest", "clauses"),
    [
        ([{GPU: "4"}, {GPU: "2", "cpu": "8"}], "nvidia.com/gpu (6 on 2 nodes)", ["nearest"]),
        ([{GPU: "4"}, {GPU: "0"}], "nvidia.com/gpu (4 on 1 node)", ["nearest"]),
        ([{GPU: "4"}, {MIG: "0"}], "nvidia.com/gpu (4 on 1 node)", ["nearest", "announcing"]),
        ([{"amd.com/gpu": "4"}, {"cpu": "8"}], "", []),
        ([{"amd.com/gpu": "4"}, {MIG: "0"}], "", ["announcing"]),
    ],
)
def test_what_nodes_offer_of_the_same_vendor_is_named(amounts: list[Json], nearest: str, clauses: list[str]) -> None:
    obstacle = describe(build_facts(*amounts))
    assert obstacle
    assert (getattr(obstacle.words["nearest"], "en", obstacle.words["nearest"]), obstacle.clauses) == (nearest, clauses)
    assert (obstacle.numbers, obstacle.nodes) == ({"nodes": 2}, ("n1", "n2"))


def test_so_many_resources_are_named_the_first_by_name() -> None:
    offered = {f"nvidia.com/mig-{size}": "1" for size in ("7g", "4g", "3g", "2g", "1g")}
    obstacle = describe(build_facts(offered, {"cpu": "8"}), "nvidia.com/mig-9g")
    assert obstacle
    text = getattr(obstacle.words["nearest"], "en", "")
    assert [name for name in sorted(offered) if name in text] == sorted(offered)[:MAX_NEAREST]


@pytest.mark.parametrize(
    ("containers", "count"),
    [
        (None, 1),
        ([{"resources": {"limits": {MIG: "2"}}}], 2),
        # A request counts where both are there; Kubernetes wants them equal for such resources.
        ([{"resources": {"limits": {MIG: "2"}, "requests": {MIG: "3"}}}, {"resources": {"requests": {MIG: "1"}}}], 4),
        ([{"resources": {}}], 1),
    ],
)
def test_the_pod_asks_for_what_its_containers_request(containers: list[Json] | None, count: int) -> None:
    obstacle = describe(build_facts({"cpu": "8"}, {"cpu": "8"}, containers=containers))
    assert obstacle
    assert obstacle.words["asked"] == count


@pytest.mark.parametrize(
    ("resource", "amounts", "clauses"),
    [
        ("huawei.com/Ascend910B-memory", {"huawei.com/Ascend310P": "4"}, ["shares", "offered"]),
        # The nodes offer the device itself; no share; nothing of the vendor.
        ("huawei.com/Ascend910B-memory", {"huawei.com/Ascend910B": "4", "huawei.com/Ascend310P": "4"}, ["shares"]),
        ("huawei.com/Ascend910B", {"huawei.com/Ascend310P": "4"}, ["shares"]),
        ("huawei.com/Ascend910B-memory", {"nvidia.com/gpu": "4"}, ["shares"]),
        (
            "huawei.com/Ascend910B-memory",
            {"huawei.com/Ascend910B": "0", "huawei.com/Ascend310P": "4"},
            ["shares", "offered"],
        ),
    ],
)
def test_what_nodes_offer_is_added_where_they_have_no_device_of_the_share(
    resource: str, amounts: Json, clauses: list[str]
) -> None:
    words: dict[str, Any] = {"resource": resource}
    obstacle = add_offered(FoundObstacle("Obstacle", words, clauses=["shares"]), build_facts(amounts))
    assert obstacle.clauses == clauses
    assert ("offered" in obstacle.words) is ("offered" in clauses)
