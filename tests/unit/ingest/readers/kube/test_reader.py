"""Attempts from the events of each scheduler: which belong together, and that none is reported twice."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from engine.summaries.answer import build_schedulerlog
from engine.summaries.messages import list_messages
from ingest.readers.kube import KubeEvents
from ingest.readers.kube.failure_messages import GRAMMAR
from schemas.codec.records import Rejected, decode, encode
from schemas.events import Condition, Event, NodeObserved, NodeRegistered, PodObserved, PodRef
from schemas.json_types import Json
from tests.support.builders.api_server_objects import a_pod, a_pod_group, an_event, an_old_event, list_attempts, read

REFUSAL = GRAMMAR["sample"][0]["text"]


def test_a_refusal_is_an_attempt_with_counts_by_reason() -> None:
    (attempt,) = list_attempts(read(("pod", a_pod()), ("event", an_event("FailedScheduling", REFUSAL))))
    assert (str(attempt.pod), attempt.pod.uid, attempt.scheduler) == ("ml/gpu8", "uid-gpu8", "default-scheduler")
    assert (attempt.status, attempt.offered_nodes) == ("failed", 5)
    assert (attempt.complete, attempt.missing) == (False, "kube-events does not say: which nodes were refused")
    assert attempt.refused_nodes == {"node(s) had untolerated taint(s)": 2, "Insufficient nvidia.com/gpu": 3}
    assert attempt.requests[0].count == 8
    assert attempt.scheduler_message == REFUSAL
    assert build_schedulerlog(attempt).filter.summary == (
        "no available node, 5 nodes do not meet: 3 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s)"
    )


def test_a_pod_that_was_deleted_while_it_waited_was_not_tried_again() -> None:
    skipped = an_event("FailedScheduling", "skip schedule deleting pod: ml/gpu8")
    assert list_attempts(read(("pod", a_pod()), ("event", skipped))) == []


def test_a_series_gives_an_attempt_for_its_first_and_its_last_time() -> None:
    event = an_event("FailedScheduling", REFUSAL, last="2026-11-21T04:40:00.5Z")
    results = list_attempts(read(("event", event)))
    assert [f"{attempt.started_at:%H:%M:%S.%f}" for attempt in results] == ["03:13:32.250001", "04:40:00.500000"]


def test_the_condition_completes_an_event_that_was_cut() -> None:
    full_text = "0/9 nodes are available: " + ", ".join(f"1 reason-{i} {200 * 'x'}" for i in range(9)) + "."
    cut = full_text[:1020] + " ..."
    (attempt,) = list_attempts(read(("pod", a_pod(condition=full_text)), ("event", an_event("FailedScheduling", cut))))
    assert len(attempt.refused_nodes) == 9


def test_a_condition_becomes_an_attempt_when_no_event_comes() -> None:
    reader = KubeEvents()
    assert list_attempts(reader.read_object("pod", a_pod(condition=REFUSAL), 0.0)) == []
    assert reader.settle(5.0) == []
    (attempt,) = list_attempts(reader.settle(20.0))
    assert attempt.refused_nodes["Insufficient nvidia.com/gpu"] == 3
    assert f"{attempt.started_at:%H:%M:%S}" == "03:13:32"


def test_a_condition_and_its_event_are_one_attempt() -> None:
    for order in (1, -1):
        objects = [("pod", a_pod(condition=REFUSAL)), ("event", an_event("FailedScheduling", REFUSAL))][::order]
        assert len(list_attempts(read(*objects))) == 1


def test_event_and_condition_are_one_attempt_whichever_is_read_and_in_whatever_order() -> None:
    condition, event = ("pod", a_pod(condition=REFUSAL)), ("event", an_event("FailedScheduling", REFUSAL))
    reader = KubeEvents()
    apart = list_attempts(read(condition, reader=reader) + read(event, reader=reader))
    alone = [list_attempts(read(report)) for report in (condition, event)]
    together = [list_attempts(read(*order)) for order in ((condition, event), (event, condition))]
    ids = {attempt.attempt_id for attempts in (apart, *alone, *together) for attempt in attempts}
    assert len(ids) == 1


def test_two_attempts_within_one_second_have_two_ids() -> None:
    first, second = (an_event("FailedScheduling", REFUSAL, time=f"2026-11-21T03:13:32.{part}Z") for part in (25, 75))
    orders = (first, second), (second, first)
    results = [list_attempts(read(("event", earlier), ("event", later))) for earlier, later in orders]
    ids = [{attempt.attempt_id for attempt in each_order} for each_order in results]
    assert len(ids[0]) == 2
    assert ids[0] == ids[1]


def test_a_nominated_node_is_where_the_pod_waits() -> None:
    text = "0/5 nodes are available: 5 Insufficient cpu."
    (attempt,) = list_attempts(read(("pod", a_pod(nominated="gpu-1")), ("event", an_event("FailedScheduling", text))))
    assert (attempt.status, attempt.nominated) == ("failed", "gpu-1")


def test_a_bound_pod_is_one_attempt_with_its_bind() -> None:
    (attempt,) = list_attempts(read(("event", an_event("Scheduled", "Successfully assigned ml/gpu8 to gpu-1"))))
    assert attempt.bind is not None
    assert (attempt.status, attempt.chosen, attempt.bind.node) == ("succeeded", "gpu-1", "gpu-1")


def test_a_preempted_pod_is_observed_with_the_condition() -> None:
    event = an_event("Preempted", "Preempted by pod uid-pod-7 on node gpu-1", pod="fill-gpu1")
    (observed,) = read(("event", event))
    assert isinstance(observed, PodObserved)
    assert (observed.node, observed.conditions[0].type) == ("gpu-1", "Preempted")
    assert observed.conditions[0].message == "Preempted by pod uid-pod-7 on node gpu-1"


def test_a_deleted_pod_is_observed_as_gone_as_it_was_last_known() -> None:
    reader, deleted_at = KubeEvents(), datetime(2026, 11, 21, 3, 20, tzinfo=UTC)
    read(("pod", a_pod(node="gpu-1", phase="Running")), reader=reader)
    ref = PodRef(namespace="ml", name="gpu8", uid="uid-gpu8")
    assert reader.forget_pod(ref, deleted_at) == [
        PodObserved(cluster="default", pod=ref, observed_at=deleted_at, phase="Running", node="gpu-1", deleted=True)
    ]
    again = read(("pod", a_pod(node="gpu-2", version=1002)), reader=reader)
    assert [event.node for event in again if isinstance(event, PodObserved)] == ["gpu-2"]


def test_the_end_of_a_pod_is_later_than_everything_that_was_observed_of_it() -> None:
    reader = KubeEvents()
    (observed,) = (
        event for event in read(("pod", a_pod(node="gpu-1")), reader=reader) if isinstance(event, PodObserved)
    )
    ref = PodRef(namespace="ml", name="gpu8", uid="uid-gpu8")
    # In the same second as the last change, whose microseconds only order changes.
    (deleted,) = reader.forget_pod(ref, observed.observed_at - timedelta(microseconds=1))
    assert isinstance(deleted, PodObserved)
    assert deleted.observed_at > observed.observed_at


def test_a_terminating_pod_is_observed_at_its_deletion_and_not_at_its_deadline() -> None:
    leaving = a_pod(node="gpu-1", phase="Running")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-21T03:55:00Z"
    (observed,) = read(("pod", leaving))
    assert isinstance(observed, PodObserved)
    assert observed.observed_at < datetime(2026, 11, 21, 3, 55, tzinfo=UTC)


HAMI_FAILS = [
    an_old_event("FilteringFailed", "3 nodes CardInsufficientMemory(node1,node3,node4)"),
    an_old_event("FilteringFailed", "1 nodes NumaNotFit(node5)"),
    an_old_event("FilteringFailed", "no available node, 5 nodes do not meet"),
]


def test_hamis_events_about_one_attempt_name_the_nodes() -> None:
    (attempt,) = list_attempts(read(*(("event", event) for event in HAMI_FAILS)))
    assert [line.message for line in list_messages(attempt)] == [
        "3 nodes CardInsufficientMemory(node1,node3,node4)",
        "1 nodes NumaNotFit(node5)",
        "no available node, 5 nodes do not meet",
    ]
    assert (attempt.scheduler, attempt.offered_nodes) == ("hami-scheduler", 5)


def test_hamis_events_and_kube_schedulers_event_are_one_attempt() -> None:
    text = "0/5 nodes are available: 1 NodeUnfitPod: 8/8 NumaNotFit, 4 NodeUnfitPod."
    event = an_event(
        "FailedScheduling", text, pod="deepseek", time="2026-11-21T03:13:32.91Z", scheduler="hami-scheduler"
    )
    (attempt,) = list_attempts(read(*(("event", hami_event) for hami_event in [*HAMI_FAILS, event])))
    assert attempt.nodes == ["node1", "node3", "node4", "node5"]
    assert attempt.scheduler_message == text


def test_nodes_that_hami_was_not_offered_or_knows_nothing_of_are_counted_beside_its_own() -> None:
    text = (
        "0/11 nodes are available: 1 NodeUnfitPod: 8/8 NumaNotFit, 2 node unregistered, 3 node(s) had untolerated "
        "taint {dedicated: infer}, 1 node(s) were unschedulable, 4 NodeUnfitPod. preemption: 0/11 nodes are available: "
        "11 Preemption is not helpful for scheduling."
    )
    event = an_event(
        "FailedScheduling", text, pod="deepseek", time="2026-11-21T03:13:32.91Z", scheduler="hami-scheduler"
    )
    (attempt,) = list_attempts(read(*(("event", hami_event) for hami_event in [*HAMI_FAILS, event])))
    assert attempt.nodes == ["node1", "node3", "node4", "node5"]
    assert attempt.offered_nodes == 11
    assert attempt.refused_nodes == {
        "node unregistered": 2,
        "node(s) had untolerated taint {dedicated: infer}": 3,
        "node(s) were unschedulable": 1,
    }


def test_a_node_with_two_codes_counts_for_both() -> None:
    more = an_old_event("FilteringFailed", "2 nodes CardCordoned(node1,node9)")
    (attempt,) = list_attempts(read(*(("event", hami_event) for hami_event in [more, *HAMI_FAILS])))
    reasons = {node.name: node.containers[0].reason for node in build_schedulerlog(attempt).filter.nodes}
    assert reasons["node1"] == "CardCordoned: also CardInsufficientMemory"
    assert attempt.refused_nodes == {"CardInsufficientMemory": 1}


def test_hamis_success_has_the_scores_of_the_nodes_that_fit_and_its_bind() -> None:
    events = [
        an_old_event("FilteringSucceed", "find fit node(node9), 2 nodes not fit, 2 nodes fit(node5:11.58,node9:12.50)"),
        an_old_event("BindingSucceed", "Successfully binding node [node9] to ml/deepseek", time="2026-11-21T03:13:40Z"),
        an_event("Scheduled", "Successfully assigned ml/deepseek to node9", pod="deepseek",
                 time="2026-11-21T03:13:40.1Z", scheduler="hami-scheduler"),
    ]  # fmt: skip
    (attempt,) = list_attempts(read(*(("event", event) for event in events)))
    assert (attempt.status, attempt.chosen, attempt.offered_nodes, attempt.fit_nodes) == ("succeeded", "node9", 4, 2)
    assert [(node.name, node.score) for node in build_schedulerlog(attempt).filter.nodes] == [
        ("node5", 11.58),
        ("node9", 12.5),
    ]
    assert f"{attempt.started_at:%H:%M:%S.%f}" == "03:13:32.000000"


def test_a_bind_that_comes_late_is_the_end_of_its_attempt() -> None:
    reader = KubeEvents()
    fits = an_old_event("FilteringSucceed", "find fit node(node9), 0 nodes not fit, 1 nodes fit(node9:1.00)")
    failed = an_old_event("BindingFailed", "node node9 has been locked within 5m0s", time="2026-11-21T03:14:10Z")
    events = read(("event", fits), reader=reader)
    events += read(("event", failed), reader=reader)
    (attempt,) = list_attempts(events)
    assert attempt.bind is not None
    assert (attempt.status, attempt.bind.node, attempt.bind.error) == ("failed", "node9", failed["note"])


def test_kais_scheduled_event_is_a_choice_and_no_bind() -> None:
    text = "Successfully assigned pod ml/infer-0 to node gpu-0 at node-pool default"
    scheduled = an_event("Scheduled", text, pod="infer-0", scheduler="kai-scheduler")
    (attempt,) = list_attempts(read(("event", scheduled)))
    assert (attempt.status, attempt.chosen, attempt.bind) == ("pending", "gpu-0", None)
    failed = an_event("BindingError", "Failed to bind pod ml/infer-0 to node gpu-0: no such node", pod="infer-0",
                      scheduler="binder", time="2026-11-21T03:13:33Z")  # fmt: skip
    (attempt,) = list_attempts(read(("event", scheduled), ("event", failed)))
    assert (attempt.status, attempt.scheduler) == ("failed", "kai-scheduler")


def test_a_pipelined_pod_of_kai_is_nominated() -> None:
    event = an_event(
        "Pipelined", "Pod ml/infer-0 was pipelined to node gpu-0", pod="infer-0", scheduler="kai-scheduler"
    )
    (attempt,) = list_attempts(read(("event", event)))
    assert (attempt.status, attempt.nominated) == ("pending", "gpu-0")


@pytest.mark.parametrize("kind", ["Pod", "PodGroup"])
def test_the_event_of_a_gang_is_about_the_pod_to_blame(kind: str) -> None:
    text = next(sample["text"] for sample in GRAMMAR["sample"] if sample["scheduler"] == "Volcano, the pod group")
    event = an_event("Unschedulable", text, pod="job-pg", kind=kind, scheduler="volcano")
    (attempt,) = list_attempts(read(("event", event)))
    assert str(attempt.pod) == ("ml/job-pg" if kind == "Pod" else "ml/x-3")
    assert attempt.refused_nodes == {"Insufficient nvidia.com/gpu": 3}


KAI_TEXT = "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPU memory."


def test_a_pod_groups_condition_is_about_the_pod_that_it_names() -> None:
    (attempt,) = list_attempts(read(("pod", a_pod()), ("pod group", a_pod_group(KAI_TEXT))))
    assert (str(attempt.pod), attempt.pod.uid, attempt.scheduler) == ("ml/gpu8", "uid-gpu8", "kai-scheduler")
    assert attempt.scheduler_message == KAI_TEXT
    assert list(attempt.refused_nodes.values()) == [2]


def test_a_pod_with_an_event_of_its_own_gets_no_second_attempt_from_its_group() -> None:
    event = an_event("Unschedulable", KAI_TEXT, scheduler="kai-scheduler")
    for order in (1, -1):
        objects = [("event", event), ("pod group", a_pod_group(KAI_TEXT))][::order]
        assert len(list_attempts(read(*objects))) == 1


@pytest.mark.parametrize(
    "group", [a_pod_group(KAI_TEXT, status="False"), a_pod_group(KAI_TEXT, pod="gpu8"), a_pod_group(KAI_TEXT, time="?")]
)
def test_a_pod_group_that_refuses_no_pod_is_noise(group: Json) -> None:
    reader = KubeEvents()
    assert read(("pod", a_pod()), ("pod group", group), reader=reader)[1:] == []
    assert reader.outcomes["pod group", "noise"] == 1


ALL: list[tuple[str, Json]] = [
    ("pod", a_pod(condition=REFUSAL)),
    ("event", an_event("FailedScheduling", REFUSAL, last="2026-11-21T04:40:00.5Z")),
    *(("event", event) for event in HAMI_FAILS),
    ("event", an_event("Scheduled", "Successfully assigned ml/other to gpu-1", pod="other")),
    ("event", an_event("Pulled", "Container image already present", pod="other")),
]


def encode_all(events: list[Event]) -> list[tuple[bytes, bytes]]:
    return [(record.key, record.value) for record in map(encode, events)]


def test_reading_again_in_any_order_gives_the_same_events() -> None:
    once = set(encode_all(read(*ALL)))
    for seed in range(20):
        shuffled = random.Random(seed).sample(ALL, len(ALL))
        assert set(encode_all(read(*shuffled, *shuffled))) == once


def test_every_event_is_a_valid_record() -> None:
    for event in read(*ALL):
        record = encode(event)
        assert not isinstance(decode(record.value, record.headers), Rejected)


def test_every_object_is_accounted_for() -> None:
    reader = KubeEvents()
    read(*ALL, ("pod", {}), ("node", {"metadata": 3}), ("event", {"reason": "FailedScheduling"}), reader=reader)
    assert reader.outcomes["event", "noise"] == 1
    assert [reader.outcomes[kind, "unknown"] for kind in ("pod", "node", "event")] == [1, 1, 1]
    assert sum(reader.outcomes.values()) == len(ALL) + 3


def a_node(**annotations: str) -> Json:
    return {
        "metadata": {"name": "gpu-1", "creationTimestamp": "2026-11-21T03:00:00Z", "resourceVersion": "77",
                     "annotations": {f"hami.io/{key.replace('_', '-')}": text for key, text in annotations.items()}},
        "status": {
            "capacity": {"cpu": "12", "memory": "32512128Ki", "nvidia.com/gpu": "8"},
            "allocatable": {"cpu": "11"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                            "lastTransitionTime": "2026-11-21T03:00:10Z"}],
        },
    }  # fmt: skip


def test_a_node_is_observed_with_capacity_allocatable_and_conditions() -> None:
    (observed,) = read(("node", a_node()))
    assert isinstance(observed, NodeObserved)
    assert (observed.capacity["nvidia.com/gpu"], observed.allocatable) == ("8", {"cpu": "11"})
    assert isinstance(observed.conditions[0], Condition)
    assert (observed.conditions[0].type, observed.observed_at.microsecond) == ("Ready", 77)


@pytest.mark.parametrize(("spec", "expected"), [({}, False), ({"unschedulable": True}, True)])
def test_a_node_is_observed_as_unschedulable_when_kubectl_cordon_has_marked_it(spec: Json, expected: bool) -> None:
    (observed,) = read(("node", a_node() | {"spec": spec}))
    assert isinstance(observed, NodeObserved)
    assert observed.unschedulable is expected


def test_a_registration_names_those_of_its_devices_that_are_cordoned() -> None:
    text = "GPU-a,10,40960,100,NVIDIA-A100,0,true:GPU-b,10,40960,100,NVIDIA-A100,0,true:"
    node = a_node(node_nvidia_register=text, device_cordon="GPU-b, GPU-of-another-node")
    registered = read(("node", node))[1]
    assert isinstance(registered, NodeRegistered)
    assert registered.cordoned == ["GPU-b"]


@pytest.mark.parametrize(
    "text",
    [
        '[{"id":"GPU-a","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA-A100","mode":"hami-core","health":true}]',
        "GPU-a,10,40960,100,NVIDIA-A100,0,true:",
        "GPU-a,10,40960,100,NVIDIA-A100,0,true,0,hami-core:",
    ],
)
def test_a_registration_is_read_in_all_its_forms(text: str) -> None:
    node = a_node(node_nvidia_register=text, node_handshake="Requesting_2026-11-21 03:00:00")
    registered = read(("node", node))[1]
    assert isinstance(registered, NodeRegistered)
    assert (registered.uuid, registered.memory_mib.tolist(), registered.slots.tolist()) == (["GPU-a"], [40960], [10])
    assert (registered.healthy, registered.mode, registered.registered) == ([True], ["hami-core"], True)
    assert registered.handshake.startswith("Requesting_")


@pytest.mark.parametrize(
    "text", ["", "[", "[3]", "a,b:", '[{"id":3}]', '[{"id":"a","devmem":"x"}]', "a,1,2,x,d,0,true:"]
)
def test_a_registration_that_cant_be_read_has_a_cause(text: str) -> None:
    registered = read(("node", a_node(node_nvidia_register=text)))[1]
    assert isinstance(registered, NodeRegistered)
    assert not registered.registered
    assert registered.cause.startswith("annotation hami.io/node-nvidia-register, ")


def test_a_heartbeat_gives_no_observation() -> None:
    reader = KubeEvents()
    assert len(read(("node", a_node(node_nvidia_register="GPU-a,1,2,3,T,0,true:")), reader=reader)) == 2
    again = a_node(node_nvidia_register="GPU-a,1,2,3,T,0,true:", node_handshake="Requesting_2026")
    again["metadata"]["resourceVersion"] = "78"
    assert [type(event) for event in read(("node", again), reader=reader)] == [NodeRegistered]
    again["metadata"]["annotations"]["hami.io/node-handshake"] = "Requesting_2027"
    assert read(("node", again), reader=reader) == []


def test_events_are_counted_and_unknown_objects_are_shown() -> None:
    reader = KubeEvents()
    events = read(
        ("pod", a_pod()),
        ("event", an_event("FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.")),
        ("event", an_event("FilteringSucceed", "a text that HAMi never wrote")),
        reader=reader,
    )
    counts = reader.counts
    assert counts.events == len(events)
    assert (counts.attempts_complete, counts.attempts_incomplete) == (0, 1)
    assert (counts.lines["unknown"], list(counts.samples.values())) == (
        1,
        ["event FilteringSucceed a text that HAMi never wrote"],
    )


def test_what_only_the_bind_shows_leaves_open_how_many_nodes_there_were_and_when_the_filter_ended() -> None:
    bound = an_event("Scheduled", "Successfully assigned ml/gpu8 to node9")
    (attempt,) = list_attempts(read(("event", bound)))
    assert attempt.reports[0].not_reported == ["the nodes that were not chosen", "offered nodes", "end of the filter"]
    assert build_schedulerlog(attempt).filter.summary == "find fit node(node9), 1 nodes fit(node9:0.00)"
    fits = an_old_event("FilteringSucceed", "find fit node(node9), 0 nodes not fit, 1 nodes fit(node9:1.00)")
    (attempt,) = list_attempts(read(("event", fits)))
    assert attempt.reports[0].not_reported == ["the nodes that were not chosen"]
