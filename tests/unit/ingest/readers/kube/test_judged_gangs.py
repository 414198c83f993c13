"""Refusals of a member of a gang: the other members, tried before it, hold what the nodes have."""

from schemas.events import AttemptSummarized
from schemas.json_types import Json
from tests.support.builders import claims
from tests.support.builders.api_server_objects import an_event
from tests.support.builders.watched_clusters import WatchedCluster, a_node, a_pod, list_reasons
from tests.support.control_plane.plain_scheduler import list_attempts

GPUS = "Insufficient nvidia.com/gpu"


def a_worker(number: int, group: str = "ring") -> Json:
    pod = a_pod(f"{group}-{number}", 1)
    pod["kind"] = "Pod"
    pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": group}
    pod["spec"]["schedulerName"] = "volcano"
    return pod


def read_refusal(cluster: WatchedCluster, pods: list[Json], message: str) -> AttemptSummarized:
    event = an_event("FailedScheduling", message, scheduler="volcano", pod=pods[-1]["metadata"]["name"])
    (attempt,) = list_attempts(cluster.read(*(("pod", pod) for pod in pods), ("event", event)))
    return attempt


def test_the_member_that_is_one_too_many_has_the_scheduler_s_reason_on_each_node() -> None:
    cluster = WatchedCluster()
    cluster.put(a_node("gpu-0", 2), a_node("gpu-1", 2))
    attempt = read_refusal(cluster, [a_worker(number) for number in range(5)], f"0/2 nodes are unavailable: 2 {GPUS}.")
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    assert list_reasons(attempt) == dict.fromkeys(("gpu-0", "gpu-1"), GPUS)


def test_members_that_all_fit_leave_the_difference_to_the_scheduler() -> None:
    cluster = WatchedCluster()
    cluster.put(a_node("gpu-0", 2), a_node("gpu-1", 4))
    attempt = read_refusal(cluster, [a_worker(number) for number in range(5)], f"0/2 nodes are unavailable: 2 {GPUS}.")
    assert attempt.reconstruction
    assert (attempt.reconstruction.agreement, attempt.reconstruction.passing_nodes) == ("different", 2)


def test_pods_of_other_groups_hold_nothing() -> None:
    cluster = WatchedCluster()
    cluster.put(a_node("gpu-0", 2))
    pods = [a_worker(0, "other"), a_worker(1, "other"), a_worker(0)]
    attempt = read_refusal(cluster, pods, f"0/1 nodes are unavailable: 1 {GPUS}.")
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "different"


def test_members_that_were_tried_before_hold_the_devices_of_their_claims() -> None:
    cluster = WatchedCluster()
    slices = [claims.a_slice(claims.a_device("gpu-0"), node=node) for node in ("gpu-0", "gpu-1")]
    cluster.put(a_node("gpu-0"), a_node("gpu-1"), claims.a_class(), *slices)
    workers = [a_worker(number) for number in range(3)]
    for number, worker in enumerate(workers):
        worker["spec"]["containers"] = [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}]
        worker["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"of-{number}"}]
        claim = claims.a_claim(name=f"of-{number}")
        claim["metadata"]["namespace"] = worker["metadata"]["namespace"]
        cluster.put(claim)
    attempt = read_refusal(cluster, workers, "0/2 nodes are unavailable: 2 cannot allocate all claims.")
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    assert list_reasons(attempt) == dict.fromkeys(("gpu-0", "gpu-1"), "1/1 DeviceInUse")
