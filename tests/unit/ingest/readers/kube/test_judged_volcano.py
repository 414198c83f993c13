"""Refusals of Volcano, judged on the cluster's objects: set-ups and messages as its scheduler recorded them."""

from typing import Any

import pytest

from engine.diagnosis.refused_nodes import group_refused_nodes
from schemas.events import AttemptSummarized
from schemas.json_types import Json
from tests.support.builders.api_server_objects import an_event
from tests.support.builders.watched_clusters import WatchedCluster, a_node, a_pod, list_reasons
from tests.support.control_plane.plain_scheduler import list_attempts

GPUS = "Insufficient nvidia.com/gpu"
TAINTED = "node(s) had untolerated taint(s)"
OTHER = "node(s) didn't match Pod's node affinity/selector"


def a_volcano_pod(name: str = "train-a-worker-0", gpus: int = 4, **spec: Any) -> Json:
    pod = a_pod(name, gpus)
    pod["spec"] |= {"schedulerName": "volcano"} | spec
    return pod


def read_attempt(message: str, pod: Json, *nodes: Json) -> AttemptSummarized:
    cluster = WatchedCluster()
    cluster.put(*nodes)
    event = an_event("FailedScheduling", message, scheduler="volcano", pod=pod["metadata"]["name"])
    (attempt,) = list_attempts(cluster.read(("pod", pod), ("event", event)))
    return attempt


def a_labelled_node(name: str, pool: str) -> Json:
    node = a_node(name, 8)
    node["metadata"]["labels"] = {"pool": pool}
    return node


@pytest.mark.parametrize(
    ("message", "pod", "nodes", "reason", "code"),
    [
        # One worker asks for 8 GPUs, and three nodes have 4 each.
        (
            f"0/3 nodes are unavailable: 3 {GPUS}.",
            a_volcano_pod(gpus=8),
            [a_node(f"gpu-{index}", 4) for index in range(3)],
            GPUS,
            "InsufficientResource",
        ),
        # Both nodes have a taint.
        (
            f"0/2 nodes are unavailable: 2 {TAINTED}.",
            a_volcano_pod(),
            [a_node(f"gpu-{index}", 8, tainted=True) for index in range(2)],
            TAINTED,
            "TaintNotTolerated",
        ),
        # The workers select a pool that no node is in.
        (
            f"0/2 nodes are unavailable: 2 {OTHER}.",
            a_volcano_pod(nodeSelector={"pool": "a100"}),
            [a_labelled_node(f"gpu-{index}", "h100") for index in range(2)],
            OTHER,
            "AffinityMismatch",
        ),
    ],
)
def test_volcanos_counts_prove_the_verdict_on_each_node(
    message: str, pod: Json, nodes: list[Json], reason: str, code: str
) -> None:
    attempt = read_attempt(message, pod, *nodes)
    assert attempt.scheduler == "volcano"
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    names = [node["metadata"]["name"] for node in nodes]
    assert list_reasons(attempt) == dict.fromkeys(names, reason)
    assert [(group.code, list(group.names)) for group in group_refused_nodes(attempt)] == [(code, names)]


def test_devices_that_a_gang_plans_for_its_own_members_are_not_proved_and_named_as_passing() -> None:
    """Seven of eight workers fit in the plan of the session, which ends without binding any of them."""
    nodes = [a_node(f"gpu-{index}", 4) for index in range(2)]
    attempt = read_attempt(f"0/2 nodes are unavailable: 2 {GPUS}.", a_volcano_pod("train-a-worker-7", 1), *nodes)
    assert attempt.reconstruction
    assert (attempt.reconstruction.agreement, attempt.reconstruction.passing) == ("different", ["gpu-0", "gpu-1"])
    assert [(group.code, group.count) for group in group_refused_nodes(attempt)] == [("InsufficientResource", 2)]


def test_a_member_that_waits_for_another_one_has_no_verdicts_of_its_own() -> None:
    message = (
        "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable. Origin reason is "
        f"train-a-worker-0: 0/2 nodes are unavailable: 2 {TAINTED}."
    )
    nodes = [a_node(f"gpu-{index}", 8, tainted=True) for index in range(2)]
    attempt = read_attempt(message, a_volcano_pod("train-a-worker-1"), *nodes)
    assert attempt.reconstruction is None
    assert len(attempt.nodes) == 0
