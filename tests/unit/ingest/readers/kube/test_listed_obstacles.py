"""Obstacles of refused pods in lists, made of records, next to those that the diagnosis names on the same objects."""

import pytest

from engine.diagnosis.waiting import derive_wait
from engine.summaries.retries import derive_digests
from ingest.cases.answers import explain_pod
from ingest.cases.read_case import build_case
from schemas.events import AttemptSummarized
from schemas.json_types import Json
from tests.support.builders.api_server_objects import an_event, list_attempts
from tests.support.builders.watched_clusters import READ_AT, WatchedCluster, a_node, a_pod

TAINTS = "node(s) had untolerated taint(s)"
GPUS = "Insufficient nvidia.com/gpu"
POD = {"apiVersion": "v1", "kind": "Pod"}


def a_holder(gpus: int) -> Json:
    """A pod of another namespace on node n1."""
    pod = a_pod("held", gpus, node="n1", phase="Running")
    return {**POD, **pod, "metadata": {**pod["metadata"], "namespace": "prod"}}


HELD = a_holder(6)
CORDONED = {**a_node("n1"), "spec": {"unschedulable": True}}
UNHEALTHY = a_node("n1", 4)
UNHEALTHY["status"]["capacity"] = {**UNHEALTHY["status"]["capacity"], "nvidia.com/gpu": "8"}
CASES: list[tuple[str, str, list[Json]]] = [
    ("ResourceNeverEnough", f"0/2 nodes are available: 2 {GPUS}.", [a_node("n1", 4), a_node("n2", 2)]),
    ("ResourceInUse", f"0/1 nodes are available: 1 {GPUS}.", [a_node("n1"), HELD]),
    ("ResourceNotOffered", f"0/2 nodes are available: 2 {GPUS}.", [a_node("n1", 0), a_node("n2", 0)]),
    ("ResourceUnhealthy", f"0/1 nodes are available: 1 {GPUS}.", [UNHEALTHY]),
    ("NodeCordoned", "0/1 nodes are available: 1 node(s) were unschedulable.", [CORDONED]),
    ("TaintNotTolerated", f"0/1 nodes are available: 1 {TAINTS}.", [a_node("n1", tainted=True)]),
    (
        "ResourceBehindConstraint",
        f"0/2 nodes are available: 1 {GPUS}, 1 {TAINTS}.",
        [a_node("n1", 4), a_node("n2", tainted=True)],
    ),
    (
        "ResourceInUse",
        f"0/2 nodes are available: 1 {GPUS}, 1 {TAINTS}.",
        [a_node("n1"), HELD, a_node("n2", 8, tainted=True)],
    ),
]


def read_attempt(message: str, objects: list[Json]) -> AttemptSummarized:
    cluster = WatchedCluster()
    cluster.put(*objects)
    (attempt,) = list_attempts(cluster.read(("pod", a_pod()), ("event", an_event("FailedScheduling", message))))
    return attempt


@pytest.mark.parametrize(("code", "message", "objects"), CASES)
def test_a_list_names_the_obstacle_that_the_diagnosis_names(code: str, message: str, objects: list[Json]) -> None:
    attempt = read_attempt(message, objects)
    wait = derive_wait(attempt)
    event = {"kind": "Event", "apiVersion": "events.k8s.io/v1", **an_event("FailedScheduling", message)}
    case = build_case([*objects, {**POD, **a_pod()}, event], (), READ_AT)
    diagnosis = explain_pod(case, f"{attempt.pod.namespace}/{attempt.pod.name}").diagnosis
    assert wait
    assert diagnosis.obstacle
    assert (wait.code, wait.layer) == (diagnosis.obstacle.code, diagnosis.layer) == (code, "nodes")


def test_the_obstacle_of_a_list_names_no_pod_of_another_namespace() -> None:
    attempt = read_attempt(*CASES[1][1:])
    wait = derive_wait(attempt)
    assert wait
    assert "a pod of another namespace" in wait.sentence_en
    # Nor does the attempt, which more people may read than the pods of the other namespace.
    assert "prod/held" not in str(attempt.reconstruction)


def test_counts_that_the_objects_contradict_keep_the_words_of_the_scheduler() -> None:
    attempt = read_attempt(f"0/2 nodes are available: 2 {TAINTS}.", [a_node("n1", 4), a_node("n2", 2)])
    assert attempt.reconstruction
    assert attempt.reconstruction.obstacle is None
    wait = derive_wait(attempt)
    assert wait
    assert wait.code == "TaintNotTolerated"


def test_other_amounts_of_the_same_verdicts_cost_no_record_of_their_own() -> None:
    """The verdicts of a retry are stored once: the obstacle changes with each pod that comes or goes."""
    message = CASES[1][1]
    first, retry = (read_attempt(message, [a_node("n1"), a_holder(gpus)]) for gpus in (6, 7))
    assert first.reconstruction != retry.reconstruction
    assert derive_digests(first) == derive_digests(retry)
