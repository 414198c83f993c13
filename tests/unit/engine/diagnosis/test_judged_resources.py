"""Amounts that nodes lack, in the numbers and names that people read: worked out by hand on a few nodes.

Amounts are written as Kubernetes writes them: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from typing import Any

import pytest

from engine.diagnosis.judged_nodes import derive_judged_obstacles
from engine.diagnosis.outcome import FoundObstacle
from engine.filters.judge import judge
from engine.filters.judgement import Judgement
from engine.filters.release import LATEST, SchedulerRelease
from engine.snapshot.reading import read_snapshot
from schemas.json_types import Json
from tests.support.builders.claims import a_class
from tests.support.builders.cluster import a_node, a_pod, a_taint
from tests.support.builders.layer_objects import to_english

GPU, MEMORY_OF_GPU = "nvidia.com/gpu", "nvidia.com/gpumem"


def find_obstacles(
    pod: Json, *objects: Json, unread: tuple[str, ...] = (), release: SchedulerRelease = LATEST
) -> dict[str, FoundObstacle]:
    snapshot = read_snapshot(objects, unread)
    assert not snapshot.rejected
    judgement = judge(snapshot, pod, release=release, alone=True)
    assert isinstance(judgement, Judgement)
    return {obstacle.code: obstacle for obstacle in derive_judged_obstacles(snapshot, judgement, release=release)}


def get_words(obstacle: FoundObstacle, *names: str) -> tuple[Any, ...]:
    """Get words of an obstacle, in English."""
    return tuple(to_english(obstacle.words[name]) for name in names)


def list_evidence(obstacle: FoundObstacle) -> list[str]:
    return [str(evidence.words) for evidence in obstacle.evidence]


def test_a_share_of_a_device_is_a_matter_of_the_scheduler() -> None:
    pod = a_pod(gpu="1")
    pod["spec"]["containers"][0]["resources"]["requests"] |= {MEMORY_OF_GPU: "1000", "nvidia.com/gpucores": "30"}
    obstacles = find_obstacles(pod, a_node("n1", gpu="8"), a_node("n2", gpu="8"))
    assert list(obstacles) == ["ShareOfOtherScheduler"]
    obstacle = obstacles["ShareOfOtherScheduler"]
    assert get_words(obstacle, "resource", "scheduler") == (
        "nvidia.com/gpucores, nvidia.com/gpumem",
        "default-scheduler",
    )
    assert (obstacle.nodes, obstacle.numbers["nodes"]) == (["n1", "n2"], 2)
    evidence = [sorted(words.split(", ")) for words in list_evidence(obstacle)]
    assert evidence == [["Insufficient nvidia.com/gpucores", "Insufficient nvidia.com/gpumem"]] * 2


def test_an_amount_is_described_on_the_nodes_that_offer_some_where_another_has_enough() -> None:
    """The third node would do, but for a port that is in use there."""
    pod = a_pod(cpu="4", gpu="1")
    port = [{"containerPort": 80, "hostPort": 80}]
    pod["spec"]["containers"][0]["ports"] = port
    blocker = a_pod("blocker", node="n4")
    blocker["spec"]["containers"][0]["ports"] = port
    obstacles = find_obstacles(
        pod, a_node("n1", cpu="3", gpu="1"), a_node("n2", cpu="2500m", gpu="1"), a_node("n3"), a_node("n4", gpu="1"),
        blocker,
    )  # fmt: skip
    amounts = obstacles["InsufficientResource"]
    assert get_words(amounts, "resource", "asked", "free", "node") == ("cpu", "4", "3", "n1")
    assert (amounts.nodes, amounts.clauses) == (["n1", "n2"], ["nodes", "amounts"])
    assert list_evidence(amounts) == ["Insufficient cpu: 3 free", "Insufficient cpu: 2.5 free"]
    missing = obstacles["NodeWithoutResource"]
    assert (missing.nodes, get_words(missing, "resource")) == (["n3"], (GPU,))


def test_an_overcommitted_node_has_0_free_and_the_last_of_equal_nodes_is_named() -> None:
    """A node may be overcommitted, as after its devices failed: it has nothing free, and not less."""
    pod = a_pod(gpu="1")
    port = [{"containerPort": 80, "hostPort": 80}]
    pod["spec"]["containers"][0]["ports"] = port
    blocker = a_pod("blocker", node="n4")
    blocker["spec"]["containers"][0]["ports"] = port
    holders = [a_pod("a", node="n1", gpu="3"), a_pod("b", node="n2", gpu="3")]
    nodes = [a_node("n1", gpu="2"), a_node("n2", gpu="2"), a_node("n4", gpu="1")]
    obstacle = find_obstacles(pod, *nodes, *holders, blocker)["InsufficientResource"]
    assert get_words(obstacle, "free", "node") == ("0", "n2")
    assert list_evidence(obstacle) == ["Insufficient nvidia.com/gpu: 0 free"] * 2


def test_a_node_without_place_for_pods_has_no_amounts() -> None:
    pod = a_pod()
    port = [{"containerPort": 80, "hostPort": 80}]
    pod["spec"]["containers"][0]["ports"] = port
    blocker = a_pod("blocker", node="n2")
    blocker["spec"]["containers"][0]["ports"] = port
    obstacle = find_obstacles(pod, a_node("n1", pods="1"), a_node("n2"), a_pod("a", node="n1"), blocker)["TooManyPods"]
    assert get_words(obstacle, "resource", "asked", "free", "node") == ("pods", "1", "0", "n1")
    assert (obstacle.nodes, obstacle.clauses) == (["n1"], ["nodes"])
    assert list_evidence(obstacle) == ["Too many pods: 0 free"]


def test_a_cluster_without_place_for_pods_names_no_holders() -> None:
    obstacles = find_obstacles(a_pod(), a_node("n1", pods="1"), a_pod("a", node="n1"))
    assert list(obstacles) == ["TooManyPods"]
    assert (obstacles["TooManyPods"].clauses, obstacles["TooManyPods"].numbers["asked"]) == ([], 1)


def test_a_resource_that_no_node_offers_has_the_nearest_names() -> None:
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"]["requests"] = {"nvidia.com/gpus": "2"}
    obstacles = find_obstacles(pod, a_node("n1", gpu="4"), a_node("n2", gpu="4"))
    obstacle = obstacles["ResourceNotOffered"]
    assert list(obstacles) == ["ResourceNotOffered"]
    assert get_words(obstacle, "resource", "asked", "nearest") == (
        "nvidia.com/gpus",
        "2",
        "nvidia.com/gpu (8 on 2 nodes)",
    )
    assert get_words(obstacle, "announcing", "labelled", "device_class") == ("", "", "")
    assert (obstacle.clauses, obstacle.numbers) == (["nearest"], {"nodes": 2, "of_nodes": 2, "asked": 2})


def test_nodes_that_announce_no_device_come_before_those_with_labels() -> None:
    labelled = a_node("n3", labels={"nvidia.com/gpu.present": "true"})
    obstacle = find_obstacles(a_pod(gpu="1"), a_node("n1", gpu="0"), a_node("n2"), labelled)["ResourceNotOffered"]
    assert get_words(obstacle, "announcing", "labelled") == ("n1", "n3")
    assert obstacle.clauses == ["announcing"]


def test_a_class_that_would_serve_the_resource_is_named() -> None:
    """The feature gate DRAExtendedResource is on by default since 1.36."""
    served = a_class(extendedResourceName=GPU)
    obstacle = find_obstacles(a_pod(gpu="1"), a_node("n1"), served, release=SchedulerRelease(35))
    assert get_words(obstacle["ResourceNotOffered"], "device_class") == ("gpu",)
    assert obstacle["ResourceNotOffered"].clauses == ["device_class"]


@pytest.mark.parametrize(
    ("resource", "labels", "is_labelled"),
    [
        (GPU, {"nvidia.com/gpu.present": "true"}, True),
        # Labels of clouds have other words for it.
        (GPU, {"cloud.google.com/gke-accelerator": "nvidia-l4"}, True),
        (GPU, {"example.com/GPU-model": "a100"}, True),
        (GPU, {"team": "nvidia"}, False),
        ("amd.com/gpu", {"amd.com/gpu.family": "AI"}, True),
        ("amd.com/gpu", {"nvidia.com/gpu.present": "true"}, False),
        # A resource of Kubernetes itself has no vendor.
        ("hugepages-2Mi", {"nvidia.com/gpu.present": "true"}, False),
    ],
)
def test_labels_show_nodes_of_the_vendor(resource: str, labels: dict[str, str], is_labelled: bool) -> None:
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "2Mi"}, "requests": {resource: "2Mi"}}
    if "/" in resource:
        pod["spec"]["containers"][0]["resources"] = {"requests": {resource: "1"}}
    obstacle = find_obstacles(pod, a_node("n1", labels=labels), a_node("n2"))["ResourceNotOffered"]
    assert get_words(obstacle, "labelled") == (("n1" if is_labelled else ""),)
    assert obstacle.clauses == (["labelled"] if is_labelled else [])


@pytest.mark.parametrize(("others", "clauses"), [([], []), ([a_node("n2", memory="8Gi")], ["total"])])
def test_a_request_beyond_the_largest_node_has_the_sum_of_several_nodes(others: list[Json], clauses: list[str]) -> None:
    obstacle = find_obstacles(a_pod(memory="20Gi"), a_node("n1"), *others)["ResourceNeverEnough"]
    total = f"{16 + 8 * len(others)}Gi"
    assert get_words(obstacle, "resource", "asked", "largest", "node", "total") == (
        "memory", "20Gi", "16Gi", "n1", total,
    )  # fmt: skip
    assert obstacle.clauses == clauses
    assert obstacle.numbers["largest"] == 16 * 2**30
    assert (obstacle.numbers["asked"], obstacle.numbers["total"]) == (20 * 2**30, (16 + 8 * len(others)) * 2**30)


def test_a_node_with_sick_devices_has_their_number() -> None:
    node = a_node("n1", gpu="6")
    node["status"]["capacity"][GPU] = "8"
    obstacles = find_obstacles(a_pod(gpu="2"), node, a_node("n2", gpu="1"), a_pod("a", node="n1", gpu="5"))
    obstacle = obstacles["ResourceUnhealthy"]
    assert [obstacle.words[name] for name in ("asked", "node", "capacity", "allocatable", "used", "unhealthy")] == [
        "2", "n1", 8, 6, 5, 2,
    ]  # fmt: skip
    assert (obstacle.nodes, obstacle.clauses) == (["n1"], [])
    assert (obstacle.numbers["asked"], obstacle.numbers["capacity"], obstacle.numbers["allocatable"]) == (2, 8, 6)
    # The six devices that work are enough for the pod, and the other pod has five.
    assert get_words(obstacles["ResourceInUse"], "free") == ("1",)


def hold(name: str, gpus: str, start: str, *, is_leaving: bool = False) -> Json:
    pod = a_pod(name, node="n1", gpu=gpus)
    pod["status"]["startTime"] = start
    if is_leaving:
        pod["metadata"]["deletionTimestamp"] = "2026-11-21T03:00:00Z"
    return pod


def test_who_holds_a_resource_is_named_and_whose_end_would_do() -> None:
    holders = [
        hold("a", "1", "2026-11-20T01:00:00Z"), hold("b", "4", "2026-11-20T02:00:00Z"),
        hold("c", "1", "2026-11-20T03:00:00Z", is_leaving=True), hold("d", "1", "2026-11-20T04:00:00Z"),
    ]  # fmt: skip
    obstacle = find_obstacles(a_pod(gpu="4"), a_node("n1", gpu="8"), a_node("n2"), *holders)["ResourceInUse"]
    assert get_words(obstacle, "resource", "asked", "free", "node") == (GPU, "4", "1", "n1")
    # The longest running of four; the limit is three.
    (names,) = get_words(obstacle, "holders")
    assert names == "default/a (1 on n1), default/b (4 on n1), default/c (1 on n1, being deleted)"
    # One free and four of b are enough.
    assert get_words(obstacle, "ending") == ("default/b",)
    assert (obstacle.clauses, obstacle.nodes) == (["holders", "ending"], ["n1"])
    assert (obstacle.numbers["asked"], obstacle.numbers["free"]) == (4, 1)


def test_a_closed_node_has_everything_that_keeps_the_pod_out() -> None:
    pod = a_pod(gpu="2")
    pod["spec"]["nodeSelector"] = {"zone": "a"}
    taints = [a_taint("gpu", "only"), a_taint("node.kubernetes.io/unschedulable")]
    node = a_node("n1", gpu="4", taints=taints)
    node["spec"]["unschedulable"] = True
    obstacles = find_obstacles(pod, node, a_node("n2", labels={"zone": "a"}, gpu="1"), a_pod("a", node="n1", gpu="1"))
    obstacle = obstacles["ResourceBehindConstraint"]
    assert get_words(obstacle, "asked") == ("2",)
    (closed,) = get_words(obstacle, "closed")
    # Kubernetes taints a cordoned node, which the cordon says already.
    assert closed == "n1 (3 free; cordoned, taint gpu=only:NoSchedule, not zone=a)"
    assert (obstacle.clauses, obstacle.nodes, obstacle.numbers["asked"]) == ([], ["n1"], 2)


def test_a_closed_node_that_is_full_as_well_does_not_have_the_resource() -> None:
    """Its taint would go in vain: the node that the pod may use is what it lacks."""
    nodes = [a_node("closed", gpu="4", taints=[a_taint("gpu", "only")]), a_node("open", gpu="1")]
    obstacles = find_obstacles(a_pod(gpu="2"), *nodes, a_pod("a", node="closed", gpu="3"))
    assert "ResourceBehindConstraint" not in obstacles
    assert obstacles["InsufficientResource"].nodes == ["closed", "open"]
    free = find_obstacles(a_pod(gpu="2"), *nodes, a_pod("a", node="closed", gpu="2"))
    assert get_words(free["ResourceBehindConstraint"], "closed") == ("closed (2 free; taint gpu=only:NoSchedule)",)


def test_amounts_are_what_is_certain_where_pods_were_not_read() -> None:
    obstacles = find_obstacles(a_pod(gpu="2"), a_node("n1", gpu="4"), a_node("n2", gpu="1"), unread=("Pod",))
    assert get_words(obstacles["InsufficientResource"], "free", "node") == ("1", "n2")
    # The amounts name the only node already.
    assert (obstacles["InsufficientResource"].nodes, obstacles["InsufficientResource"].clauses) == (["n2"], ["amounts"])


def test_a_closed_node_that_is_overcommitted_is_named_next_to_one_with_enough() -> None:
    taint = a_taint("gpu", "only")
    nodes = [a_node("free", gpu="4", taints=[taint]), a_node("full", gpu="4", taints=[taint])]
    obstacle = find_obstacles(a_pod(gpu="2"), *nodes, a_pod("a", node="full", gpu="5"))["ResourceBehindConstraint"]
    assert get_words(obstacle, "closed") == (
        "free (4 free; taint gpu=only:NoSchedule), full (0 free; taint gpu=only:NoSchedule)",
    )


def test_a_resource_of_which_pods_hold_more_than_all_is_0_free() -> None:
    obstacle = find_obstacles(a_pod(gpu="2"), a_node("n1", gpu="4"), a_pod("a", node="n1", gpu="5"))["ResourceInUse"]
    assert (get_words(obstacle, "free"), obstacle.numbers["free"]) == (("0",), 0)
