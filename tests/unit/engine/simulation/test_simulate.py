"""Placement of several pods, and notes on a simulated pod and its cluster; amounts are counted by hand."""

from typing import Any

import pytest

from engine.hami.releases import parse_release
from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import describe_ignored, place_workloads, simulate_workloads
from engine.simulation.verdict import PodOutcome, PodRejectedError
from engine.simulation.workloads import PodTemplate
from schemas.json_types import Json
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import NOW, a_gpu_node, a_gpu_pod, build_described, list_notes, simulate

SETTING = SimulationSetting(NOW)


def a_template(pod: Json, replicas: int = 1, kind: str = "Pod") -> PodTemplate:
    return PodTemplate(kind, pod["metadata"]["name"], pod, replicas, {})


def a_cpu_pod(name: str, cpu: str) -> Json:
    return a_pod(name, cpu=cpu)


def judge_in_turn(
    *pods: Json, objects: tuple[Json, ...] = (a_node("n1"),), count: int | None = None
) -> list[tuple[str, str]]:
    """Place pods in their order on a node of 8 CPUs; return name and outcome of each."""
    templates = [a_template(pod) for pod in pods]
    with place_workloads(build_described(*objects), templates, count, SETTING) as placed:
        return [(verdict.pod["metadata"]["name"], verdict.outcome.name) for verdict in placed.verdicts]


def test_a_pod_that_fits_takes_its_place_before_the_next_is_judged() -> None:
    assert judge_in_turn(a_cpu_pod("a", "5"), a_cpu_pod("b", "5")) == [("a", "FITS"), ("b", "REFUSED")]
    assert judge_in_turn(a_cpu_pod("a", "4"), a_cpu_pod("b", "4")) == [("a", "FITS"), ("b", "FITS")]


def test_after_a_pod_that_waits_pods_of_another_shape_are_still_judged() -> None:
    listed = judge_in_turn(a_cpu_pod("large", "9"), a_cpu_pod("small", "1"), a_cpu_pod("middle", "8"))
    assert listed == [("large", "REFUSED"), ("small", "FITS"), ("middle", "REFUSED")]


def test_pods_of_one_shape_wait_behind_the_first_that_waits() -> None:
    listed = judge_in_turn(a_cpu_pod("p", "3"), count=4)
    assert [outcome for _, outcome in listed] == ["FITS", "FITS", "REFUSED", "REFUSED"]
    assert len({name for name, _ in listed}) == 4


def test_the_first_pod_that_waits_is_the_one_to_explain() -> None:
    templates = [a_template(a_cpu_pod(name, cpu)) for name, cpu in (("a", "1"), ("b", "9"), ("c", "9"))]
    with place_workloads(build_described(a_node("n1")), templates, None, SETTING) as placed:
        assert (placed.position, placed.verdict.pod["metadata"]["name"]) == (1, "b")
    with place_workloads(build_described(a_node("n1")), templates[:1], None, SETTING) as placed:
        assert (placed.position, placed.verdict.outcome) == (0, PodOutcome.FITS)


def test_the_answer_lists_pods_only_where_there_are_several() -> None:
    cluster = build_described(a_node("n1"))
    several = [a_template(a_cpu_pod(name, "1")) for name in "ab"]
    assert [pod["name"] for pod in simulate_workloads(cluster, several, None, SETTING)["pods"]] == ["a", "b"]
    assert not simulate_workloads(cluster, several[:1], None, SETTING).get("pods")


def a_gang(size: int) -> PodTemplate:
    """A Job of Volcano, whose pods start only together."""
    spec = {"minAvailable": size, "tasks": [{"name": "w", "replicas": size, "template": a_cpu_pod("w", "1")}]}
    pod = a_cpu_pod("w", "1")
    pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "ring"}
    return PodTemplate("Job", "w", pod, size, {"spec": spec})


def a_group(minimum: int) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"namespace": "default", "name": "ring"},
        "spec": {"minMember": minimum},
    }


def test_a_workload_whose_pods_start_together_is_placed_as_a_whole() -> None:
    cluster = build_described(a_node("n1"), a_group(3))
    with place_workloads(cluster, [a_gang(3)], None, SETTING) as placed:
        assert len(placed.verdicts) == 3
    with place_workloads(cluster, [a_gang(3)], 2, SETTING) as placed:
        assert len(placed.verdicts) == 2


def test_a_gang_of_more_pods_than_are_placed_at_once_is_rejected_with_the_limit() -> None:
    cluster = build_described(a_node("n1"), a_group(100_000))
    with (
        pytest.raises(PodRejectedError, match="the gang has 100000 pods; at most"),
        place_workloads(cluster, [a_gang(100_000)], None, SETTING),
    ):
        pass


def test_names_of_pods_that_exist_are_passed_over() -> None:
    existing = a_pod("w-1", node="n1", cpu="1")
    template = PodTemplate("Deployment", "w", a_cpu_pod("w", "1"), 3, {})
    with place_workloads(build_described(a_node("n1"), existing), [template], 3, SETTING) as placed:
        names = [verdict.pod["metadata"]["name"] for verdict in placed.verdicts]
    assert "w-1" not in names
    assert len(names) == 3


def test_a_pod_that_is_judged_again_does_not_stand_in_its_own_way() -> None:
    template = PodTemplate("Pod", "p", a_cpu_pod("p", "6"), 1, {}, node="n1")
    cluster = build_described(a_node("n1"), a_pod("p", node="n1", cpu="6"))
    answer = simulate_workloads(cluster, [template], None, SETTING)
    assert answer["state"] == "fits"
    assert list_notes(answer)["JudgedAgain"].startswith("The pod is on node n1 now")
    # A pod of a workload is another pod than the one with its name.
    other = PodTemplate("Job", "p", a_cpu_pod("p", "6"), 1, {})
    assert simulate_workloads(cluster, [other], None, SETTING)["state"] == "refused"


@pytest.mark.parametrize(
    ("kind", "replicas", "count", "code"),
    [
        ("Pod", 1, None, ""),
        ("Job", 1, None, "FromTemplate"),
        ("Job", 2, None, "OneOfWorkload"),
        ("Job", 2, 1, ""),
        ("Job", 2, 2, ""),
    ],
)
def test_a_note_says_which_pod_of_a_workload_was_judged(kind: str, replicas: int, count: int | None, code: str) -> None:
    template = PodTemplate(kind, "w", a_cpu_pod("w", "1"), replicas, {})
    notes = list_notes(simulate_workloads(build_described(a_node("n1")), [template], count, SETTING))
    assert notes.keys() & {"FromTemplate", "OneOfWorkload"} == ({code} if code else set())


def test_a_cluster_without_pods_counts_as_empty() -> None:
    assert "NoPods" in list_notes(simulate(a_cpu_pod("p", "1"), a_node("n1")))
    assert "NoPods" not in list_notes(simulate(a_cpu_pod("p", "1"), a_node("n1"), a_pod("q", node="n1")))


def test_shares_on_nodes_without_hami_are_noted() -> None:
    assert "NoHami" in list_notes(simulate(a_gpu_pod(gpu=1), a_node("n1", gpu="1")))
    assert "NoHami" not in list_notes(simulate(a_cpu_pod("p", "1"), a_node("n1")))
    assert "NoHami" not in list_notes(simulate(a_gpu_pod(gpu=1), a_gpu_node("n1")))


def a_deleted_node() -> Json:
    node = a_gpu_node("n1")
    node["metadata"]["annotations"]["hami.io/node-handshake"] = "Deleted_2026.11.25 11:00:00"
    return node


def test_a_deleted_handshake_is_noted_for_pods_that_ask_for_devices() -> None:
    notes = list_notes(simulate(a_gpu_pod(gpu=1), a_deleted_node(), a_gpu_node("n2")))
    assert (
        "The handshake hami.io/node-handshake of node n1 reads Deleted_2026.11.25 11:00:00" in notes["DeletedHandshake"]
    )
    assert "DeletedHandshake" not in list_notes(simulate(a_cpu_pod("p", "1"), a_deleted_node()))


def test_an_older_release_is_named_with_the_handshake_that_it_reads() -> None:
    release: Any = parse_release("v2.8.0")
    assert (
        "This answer is that of v2.8."
        in list_notes(simulate(a_gpu_pod(gpu=1), a_deleted_node(), release=release))["DeletedHandshake"]
    )


def test_misplaced_annotations_are_among_what_is_ignored() -> None:
    pod = a_gpu_pod(gpu=1)
    pod["metadata"]["annotations"] = {"nvidia.com/use-gputypo": "A100"}
    cluster = build_described(a_gpu_node("n1"))
    codes = {note.code for note in describe_ignored(cluster, a_template(pod), ())}
    assert codes
    assert not {note.code for note in describe_ignored(cluster, a_template(a_gpu_pod(gpu=1)), ())}
