"""Gangs that are simulated: as many pods as start together, placed one after the other."""

import pytest

from tests.support.builders.cluster import Object, a_node, a_pod
from tests.support.builders.simulations import list_notes, simulate

MARK = {"scheduling.x-k8s.io/pod-group": "ring"}


def a_template(cpu: str) -> Object:
    return {"metadata": {"labels": MARK}, "spec": a_pod(cpu=cpu)["spec"]}


def a_job(cpu: str, parallelism: int) -> Object:
    spec = {"parallelism": parallelism, "template": a_template(cpu)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": spec,
    }


def a_group(minimum: int) -> Object:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "ring", "namespace": "default"}, "spec": {"minMember": minimum},
    }  # fmt: skip


def a_volcano_job(workers: int, cpu: str, minimum: int | None = None) -> Object:
    tasks = [
        {"name": "master", "replicas": 1, "template": {"spec": a_pod(cpu="1")["spec"]}},
        {"name": "worker", "replicas": workers, "template": {"spec": a_pod(cpu=cpu)["spec"]}},
    ]
    spec = {"tasks": tasks, "schedulerName": "volcano"} | ({"minAvailable": minimum} if minimum else {})
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "mpi"}, "spec": spec}


def test_a_gang_is_placed_as_a_whole_without_a_count() -> None:
    answer = simulate(a_job("3", 8), a_node("n1"), a_node("n2"), a_group(5))
    assert [pod["node"] for pod in answer["pods"]] == ["n1", "n1", "n2", "n2", None]
    assert answer["state"] == "refused"
    assert list_notes(answer)["GangWaits"] == (
        "4 of 5 pods of gang ring fit, placed one after the other; train-4 is the first that does not. "
        "5 have to start together, so none starts."
    )


def test_a_gang_that_fits_says_so() -> None:
    answer = simulate(a_job("3", 4), a_node("n1"), a_node("n2"), a_group(4))
    assert answer["state"] == "fits"
    assert list_notes(answer)["GangFits"] == "All 4 pods of gang ring fit, placed one after the other."


def test_members_that_have_nodes_are_not_placed_again() -> None:
    running = [a_pod(f"train-{number}", node="n1", labels=MARK, cpu="3") for number in range(2)]
    answer = simulate(a_job("3", 4), a_node("n1"), a_node("n2"), a_group(4), *running)
    assert [pod["node"] for pod in answer["pods"]] == ["n2", "n2"]


def test_a_gang_of_an_unknown_minimum_has_all_pods_of_its_job() -> None:
    answer = simulate(a_job("5", 3), a_node("n1"), a_node("n2"))
    assert "2 of 3 pods of gang ring fit" in list_notes(answer)["GangWaits"]


def test_a_gang_of_one_pod_is_a_pod() -> None:
    answer = simulate(a_pod("p1", labels=MARK, cpu="1"), a_node("n1"), a_group(8))
    assert answer["pods"] == []
    assert answer["node"] == "n1"


@pytest.mark.parametrize(("minimum", "code"), [(None, "GangWaits"), (3, "GangFits")])
def test_the_tasks_of_volcanos_job_are_one_gang(minimum: int | None, code: str) -> None:
    answer = simulate(a_volcano_job(3, "5", minimum), a_node("n1"), a_node("n2"))
    assert [pod["name"] for pod in answer["pods"]] == ["mpi-master-0", "mpi-worker-0", "mpi-worker-1", "mpi-worker-2"]
    note = list_notes(answer)[code]
    assert "3 of 4 pods of gang mpi fit" in note
    assert "mpi-worker-2 is the first that does not" in note


def test_the_cluster_is_as_before_after_a_gang() -> None:
    first = simulate(a_job("3", 4), a_node("n1"), a_node("n2"), a_group(4))
    assert simulate(a_job("3", 4), a_node("n1"), a_node("n2"), a_group(4)) == first


def test_pods_of_the_cluster_keep_their_names_and_what_they_hold() -> None:
    running = a_pod("train-0", node="n1", cpu="6")
    job = a_job("4", 2)
    del job["spec"]["template"]["metadata"]["labels"]
    answer = simulate(job, a_node("n1"), running, count=2)
    assert [(pod["name"], pod["node"]) for pod in answer["pods"]] == [("train-1", None), ("train-2", None)]
