"""Refused pods judged on the cluster's objects: verdicts on nodes and devices, held against the scheduler's counts."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from engine.cases.refused_pods import ClusterToJudge, RefusedPod, judge_refused_pod
from engine.claims.judgement import DeviceReason
from engine.diagnosis.refused_nodes import group_refused_nodes
from engine.diagnosis.texts import find_obstacle_of_reason, get_counted_code
from engine.filters.judge import compose_outside_reason
from engine.filters.release import SchedulerRelease
from engine.snapshot import kinds
from engine.summaries.messages import count_nodes_by_reason, list_messages
from engine.summaries.reports import combine
from ingest.readers.kube.mismatches import PERSISTING, VERDICTS_DIFFER
from ingest.readers.kube.refusal_judge import MAX_AGE
from schemas.codec.records import decode, encode
from schemas.events import AttemptSummarized, FindingReported, NodeStateChanged
from schemas.json_types import Json
from tests.support.builders import claims
from tests.support.builders.api_server_objects import an_event, list_attempts
from tests.support.builders.watched_clusters import KINDS, WatchedCluster, a_node, a_pod, list_reasons

FULL = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient nvidia.com/gpu."


def a_cluster(*more: Json) -> WatchedCluster:
    """A cluster of two nodes with too few GPUs and a tainted one; the pod of ``a_pod`` asks for 8."""
    cluster = WatchedCluster()
    cluster.put(a_node("n1", 4), a_node("n2", 4), a_node("n3", tainted=True), *more)
    return cluster


def read_attempt(cluster: WatchedCluster, message: str, pod: Json | None = None) -> AttemptSummarized:
    (attempt,) = list_attempts(cluster.read(("pod", pod or a_pod()), ("event", an_event("FailedScheduling", message))))
    return attempt


def test_nodes_have_the_reasons_that_the_scheduler_only_counted() -> None:
    attempt = read_attempt(a_cluster(), FULL)
    assert list_reasons(attempt) == {
        "n1": "Insufficient nvidia.com/gpu",
        "n2": "Insufficient nvidia.com/gpu",
        "n3": "node(s) had untolerated taint(s)",
    }
    assert attempt.reconstruction
    assert (attempt.reconstruction.agreement, attempt.reconstruction.passing_nodes) == ("equal", 0)
    assert (attempt.complete, attempt.status, attempt.reader) == (True, "failed", "")
    assert attempt.refused_nodes == {"node(s) had untolerated taint(s)": 1, "Insufficient nvidia.com/gpu": 2}


def test_equal_counts_count_once_everywhere() -> None:
    attempt = read_attempt(a_cluster(), FULL)
    assert count_nodes_by_reason(attempt) == {"Insufficient nvidia.com/gpu": 2, "node(s) had untolerated taint(s)": 1}
    groups = {group.code: (group.count, list(group.names)) for group in group_refused_nodes(attempt)}
    assert groups == {"InsufficientResource": (2, ["n1", "n2"]), "TaintNotTolerated": (1, ["n3"])}
    lines = [message.message for message in list_messages(attempt)]
    assert lines == [
        "2 nodes Insufficient nvidia.com/gpu(n1,n2)",
        "1 nodes node(s) had untolerated taint(s)(n3)",
        "no available node, 3 nodes do not meet: 2 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)",
    ]


def test_the_schedulers_counts_hold_where_the_objects_say_otherwise() -> None:
    attempt = read_attempt(a_cluster(), "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "different"
    assert attempt.reconstruction.counts == {"node(s) had untolerated taint(s)": 1, "Insufficient nvidia.com/gpu": 2}
    assert count_nodes_by_reason(attempt) == {"Insufficient nvidia.com/gpu": 3}
    assert [(group.code, group.count, len(group.names)) for group in group_refused_nodes(attempt)] == [
        ("InsufficientResource", 3, 0)
    ]
    assert "which nodes were refused" in attempt.missing


def test_a_node_that_nothing_refuses_has_no_verdict() -> None:
    attempt = read_attempt(a_cluster(a_node("n4", 8)), "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.")
    assert attempt.reconstruction
    assert (attempt.reconstruction.passing, attempt.reconstruction.passing_nodes) == (["n4"], 1)
    assert "n4" not in attempt.nodes
    assert attempt.fit_nodes == 0


def test_the_cluster_counts_as_it_was_when_the_refusal_was_read() -> None:
    cluster = a_cluster()
    reports = [("pod", a_pod()), ("event", an_event("FailedScheduling", FULL))]
    for kind, value in reports:
        if kind in KINDS:
            cluster.objects.put(KINDS[kind], "v1", value)
        cluster.reader.read_object(kind, value, 0.0)  # type: ignore[arg-type]
    cluster.put(a_node("n1", 8), a_node("n2", 8))
    (attempt,) = list_attempts(cluster.reader.settle(60.0))
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"


@pytest.mark.parametrize(("age", "is_judged"), [(MAX_AGE, True), (MAX_AGE + timedelta(seconds=2), False)])
def test_only_a_recent_refusal_is_judged(age: timedelta, is_judged: bool) -> None:
    cluster = WatchedCluster(datetime(2026, 11, 21, 3, 13, 32, tzinfo=UTC) + age)
    cluster.put(a_node("n1", 4))
    attempt = read_attempt(cluster, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    assert (attempt.reconstruction is not None) is is_judged


def test_no_pod_is_judged_on_objects_that_may_be_outdated() -> None:
    cluster = a_cluster()
    cluster.problem = "the watch of pods is broken"
    attempt = read_attempt(cluster, FULL)
    assert attempt.reconstruction is None
    assert len(attempt.nodes) == 0


def test_a_pod_that_is_read_after_its_refusal_is_judged() -> None:
    cluster = a_cluster()
    cluster.reader.read_object("event", an_event("FailedScheduling", FULL), 0.0)
    cluster.objects.put(kinds.POD, "v1", a_pod())
    cluster.reader.read_object("pod", a_pod(), 0.5)
    (attempt,) = list_attempts(cluster.reader.settle(60.0))
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"


def test_a_pod_on_a_node_that_is_read_after_the_refusal_of_the_next_one_counts() -> None:
    """The scheduler counts a pod as soon as it has chosen its node; the watch has it when it is bound."""
    cluster = WatchedCluster()
    cluster.put(a_node("n1", 8))
    cluster.objects.put(kinds.POD, "v1", a_pod())
    message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    cluster.reader.read_object("event", an_event("FailedScheduling", message), 0.0)
    cluster.objects.put(kinds.POD, "v1", a_pod("first", 4, node="n1"))
    (attempt,) = list_attempts(cluster.reader.settle(60.0))
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    assert list_reasons(attempt) == {"n1": "Insufficient nvidia.com/gpu"}


def test_a_claim_or_devices_that_are_read_after_the_refusal_count() -> None:
    full = a_claim_cluster()
    cluster = WatchedCluster()
    cluster.put(a_node("n1"), a_node("n2"))
    cluster.objects.put(kinds.POD, "v1", a_claiming_pod())
    message = "0/2 nodes are available: 2 cannot allocate all claims."
    cluster.reader.read_object("event", an_event("FailedScheduling", message), 0.0)
    cluster.put(*full.written)
    (attempt,) = list_attempts(cluster.reader.settle(60.0))
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    assert list_reasons(attempt) == {"n1": "2/2 SelectorNotMatched", "n2": "2/2 SelectorNotMatched"}


def test_counts_that_later_objects_do_not_explain_either_are_held_against_those_of_the_refusal() -> None:
    cluster = a_cluster()
    cluster.objects.put(kinds.POD, "v1", a_pod())
    message = "0/3 nodes are available: 3 Insufficient cpu."
    cluster.reader.read_object("event", an_event("FailedScheduling", message), 0.0)
    cluster.put(a_node("n4", 8))
    (attempt,) = list_attempts(cluster.reader.settle(60.0))
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "different"
    assert sum(attempt.reconstruction.counts.values()) == 3


def test_pods_on_nodes_count_and_those_that_wait_or_have_ended_do_not() -> None:
    cluster = WatchedCluster()
    cluster.put(a_node("n1", 8))
    cluster.read(("pod", a_pod("other")), ("pod", a_pod("ended", node="n1", phase="Succeeded")))
    assert read_attempt(cluster, FULL).reconstruction.passing == ["n1"]  # type: ignore[union-attr]
    cluster.read(("pod", a_pod("other", node="n1", phase="Running", version=1002)))
    event = an_event("FailedScheduling", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    event["eventTime"] = "2026-11-21T03:13:40.5Z"
    (attempt,) = list_attempts(cluster.read(("event", event)))
    assert list_reasons(attempt) == {"n1": "Insufficient nvidia.com/gpu"}


def test_an_extenders_codes_are_not_judged() -> None:
    attempt = read_attempt(a_cluster(), "0/3 nodes are available: 3 8/8 CardInsufficientMemory.")
    assert attempt.reconstruction is None


def test_verdicts_of_hamis_own_report_rank_above() -> None:
    judged = read_attempt(a_cluster(), FULL)
    named = list_attempts(
        WatchedCluster().read(
            ("event", an_event("FilteringFailed", "1 nodes CardInsufficientMemory(n1)")),
            ("event", an_event("FilteringFailed", "no available node, 1 nodes do not meet")),
        )
    )[0]
    log = named.model_copy(
        update={"reports": [named.reports[0].model_copy(update={"source": "hami-log", "attempt_id": "b"})]}
    )
    for first, second in ((judged, log), (log, judged)):
        both = combine(first, second)
        assert list_reasons(both) == {"n1": "CardInsufficientMemory"}
        assert both.reconstruction is None


def test_equal_pods_are_judged_once_and_other_pods_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_pods: list[Json] = []

    def judge(cluster: ClusterToJudge, pod: Json, now: datetime) -> RefusedPod | None:
        judged_pods.append(pod)
        return judge_refused_pod(cluster, pod, now)

    monkeypatch.setattr("ingest.readers.kube.refusal_judge.judge_refused_pod", judge)
    cluster = a_cluster()
    pods = [a_pod("a"), a_pod("b"), a_pod("small", 5)]
    events = [an_event("FailedScheduling", FULL, pod=pod["metadata"]["name"]) for pod in pods]
    attempts = list_attempts(cluster.read(*(("pod", pod) for pod in pods), *(("event", event) for event in events)))
    assert [pod["metadata"]["name"] for pod in judged_pods] == ["a", "small"]
    assert {attempt.pod.name for attempt in attempts} == {"a", "b", "small"}
    assert all(list_reasons(attempt)["n1"] == "Insufficient nvidia.com/gpu" for attempt in attempts)


def test_conditions_of_waiting_pods_and_heartbeats_of_nodes_leave_the_cluster_as_it_is() -> None:
    cluster = a_cluster()
    before = cluster.objects.take_moment()
    beating = a_node("n1", 4)
    beating["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-21T03:13:00Z"}]
    cluster.read(("node", beating), ("pod", a_pod(condition=FULL)))
    assert cluster.objects.take_moment() is before
    cluster.put(a_node("n1", 5))
    assert cluster.objects.take_moment().revision == before.revision + 1


def test_an_unread_kind_is_named_as_a_right() -> None:
    cluster, pod = a_cluster(), a_pod()
    cluster.objects.unread = frozenset((kinds.VOLUME_CLAIM, kinds.VOLUME))
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    attempt = read_attempt(cluster, FULL, pod)
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "not compared"
    assert "persistentvolumeclaims" in attempt.reconstruction.unread


def test_the_words_of_a_pod_that_is_refused_before_any_node_are_compared() -> None:
    pod = a_pod()
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    attempt = read_attempt(a_cluster(), '0/3 nodes are available: persistentvolumeclaim "data" not found.', pod)
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    assert len(attempt.nodes) == 0
    assert attempt.error == 'persistentvolumeclaim "data" not found'


def test_a_difference_that_persists_is_a_finding_once() -> None:
    cluster = a_cluster()
    cluster.read(("pod", a_pod()))
    findings = []
    for second in range(33, 33 + PERSISTING + 2):
        event = an_event("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.")
        event["eventTime"] = f"2026-11-21T03:13:{second}.5Z"
        findings.append([item for item in cluster.read(("event", event)) if isinstance(item, FindingReported)])
    assert [len(reported) for reported in findings] == [0, 0, 1, 0, 0]
    (finding,) = findings[PERSISTING - 1]
    assert finding.finding == VERDICTS_DIFFER
    assert finding.evidence == [
        "0/3 nodes are available: 3 Insufficient cpu.",
        "worked out: 2 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)",
    ]


def a_claim_cluster(held: Sequence[str] = ("gpu-0",)) -> WatchedCluster:
    """A cluster of two nodes with two devices each, of which other claims hold some on the first."""
    cluster = WatchedCluster()
    slices = [
        claims.a_slice(
            *(claims.a_device(f"gpu-{index}", "40Gi", {"productName": "A100"}) for index in range(2)), node=node
        )
        for node in ("n1", "n2")
    ]
    holder = claims.a_claim(name="held", status=claims.an_allocation(*held, node="n1"))
    wanted = claims.a_claim(
        claims.a_request("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"), name="wanted"
    )
    wanted["metadata"]["namespace"] = "ml"
    cluster.put(a_node("n1"), a_node("n2"), *slices, claims.a_class(), holder, wanted)
    return cluster


def a_claiming_pod() -> Json:
    pod = a_pod()
    pod["spec"]["containers"] = [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}]
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "wanted"}]
    return pod


def test_devices_of_a_claim_have_their_reasons() -> None:
    events = a_claim_cluster().read(
        ("pod", a_claiming_pod()),
        ("event", an_event("FailedScheduling", "0/2 nodes are available: 2 cannot allocate all claims.")),
    )
    (attempt,) = list_attempts(events)
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    assert list_reasons(attempt) == {"n1": "2/2 SelectorNotMatched", "n2": "2/2 SelectorNotMatched"}
    assert [(request.container, request.vendor, request.count) for request in attempt.requests] == [("main", "gpu", 1)]
    assert attempt.complete, attempt.missing
    groups = {group.code: list(group.names) for group in group_refused_nodes(attempt)}
    assert groups == {"SelectorNotMatched": ["n1", "n2"]}
    states = {event.node: event for event in events if isinstance(event, NodeStateChanged)}
    assert states["n1"].uuid == ["gpu.nvidia.com/n1/gpu-0", "gpu.nvidia.com/n1/gpu-1"]
    assert states["n1"].slots_used.tolist() == [1, 0]
    assert (states["n1"].kinds[0].model, states["n1"].kinds[0].memory_mib) == ("A100", 40 * 1024)


def test_a_device_that_others_hold_has_another_reason_than_one_of_another_kind() -> None:
    cluster, pod = a_claim_cluster(), a_claiming_pod()
    two = claims.a_claim(claims.a_request(count=2), name="wanted")
    two["metadata"]["namespace"] = "ml"
    cluster.put(two, claims.a_claim(name="more", status=claims.an_allocation("gpu-0", "gpu-1", node="n2")))
    attempt = read_attempt(cluster, "0/2 nodes are available: 2 cannot allocate all claims.", pod)
    assert list_reasons(attempt) == {"n1": "1/2 DeviceInUse, 1/2 TooFewDevices", "n2": "2/2 DeviceInUse"}
    groups = {group.code: (group.count, list(group.names)) for group in group_refused_nodes(attempt)}
    assert groups == {"DeviceInUse": (1, ["n2"]), "TooFewDevices": (1, ["n1"])}


def test_another_count_of_the_scheduler_is_not_divided_by_reasons_of_devices() -> None:
    message = "0/2 nodes are available: 1 cannot allocate all claims, 1 Insufficient cpu."
    attempt = read_attempt(a_claim_cluster(), message, a_claiming_pod())
    groups = {group.code: (group.count, len(group.names)) for group in group_refused_nodes(attempt)}
    assert groups == {"DevicesNotAllocatable": (1, 0), "InsufficientResource": (1, 0)}


def test_every_record_can_be_written_and_read() -> None:
    events = a_claim_cluster().read(
        ("pod", a_claiming_pod()),
        ("event", an_event("FailedScheduling", "0/2 nodes are available: 2 cannot allocate all claims.")),
    )
    for event in events:
        record = encode(event)
        decoded = decode(record.value, record.headers)
        assert encode(decoded).value == record.value  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", DeviceReason)
def test_every_reason_of_a_device_is_counted_as_the_scheduler_counts_claims(reason: DeviceReason) -> None:
    assert find_obstacle_of_reason(reason.value) == (reason.value, "")
    assert get_counted_code(reason.value) == find_obstacle_of_reason("cannot allocate all claims")[0]


@pytest.mark.parametrize("release", [SchedulerRelease(30), SchedulerRelease(36)])
def test_a_node_outside_the_named_ones_is_refused_by_its_selector(release: SchedulerRelease) -> None:
    assert find_obstacle_of_reason(compose_outside_reason(release))[0] == "AffinityMismatch"
