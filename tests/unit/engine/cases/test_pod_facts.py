"""Facts about pods of cases of a few objects."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.cases.judging import PodOwner, build_case_judge
from engine.cases.pod_facts import (
    CaseFacts,
    find_maker,
    is_gated,
    judge_members,
    sort_members,
    to_event_evidence,
    to_kubelet_problem,
)
from engine.diagnosis.evidence import Evidence, Unknown
from engine.diagnosis.facts import JudgedGang, OwnerProblem
from engine.diagnosis.layers.group_members import Group
from engine.snapshot import kinds
from engine.snapshot.case_objects import collect_objects, parse_event
from schemas.events import ObjectProblem
from tests.support.builders.cluster import Object, a_node, a_pod
from tests.support.builders.events import a_summary

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def an_event(reason: str, minute: int = 0, **fields: Any) -> Object:
    """A warning of the kubelet about the pod ``p1``."""
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "default", "name": f"p1.{reason}.{minute}"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p1", "uid": "uid-p1"},
        "reason": reason, "message": f"words of {reason}", "type": "Warning", "count": 3,
        "source": {"component": "kubelet"}, "lastTimestamp": f"2026-01-02T11:{minute:02}:00Z",
    }  # fmt: skip
    return event | fields


def to_time(minute: int) -> datetime:
    return datetime(2026, 1, 2, 11, minute, tzinfo=UTC)


def an_object(kind: str, name: str, api: str = "v1", namespace: str = "default", **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def collect_facts(*objects: Object, unread: tuple[str, ...] = (), **options: Any) -> CaseFacts:
    return CaseFacts(collect_objects(objects, unread), NOW, **options)


def add_owner(entry: Object, kind: str, name: str, api: str = "apps/v1") -> Object:
    """Return the object with an owner that controls it."""
    reference = {"apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    return entry | {"metadata": entry["metadata"] | {"ownerReferences": [reference]}}


def test_a_pod_that_was_not_read_has_only_its_events() -> None:
    attempt = a_summary()
    facts = collect_facts(an_event("Killing", 1), an_event("Failed", 2), a_node()).build("default", "p1", attempt)
    assert (facts.cluster, facts.namespace, facts.name, facts.now) == ("default", "default", "p1", NOW)
    assert (facts.pod, facts.nodes, facts.claims, facts.unknown) == (None, None, None, ())
    assert (facts.attempt, facts.is_latest) == (attempt, False)
    assert facts.events == [
        Evidence("event", EVENTS, to_time(minute), "kubelet", {"times": 3}, f"{reason}: words of {reason}")
        for reason, minute in (("Failed", 2), ("Killing", 1))
    ]


def test_events_about_an_earlier_pod_of_the_name_are_left_out() -> None:
    earlier = an_event("Killing") | {"involvedObject": {**an_event("Killing")["involvedObject"], "uid": "uid-old"}}
    facts = collect_facts(a_pod(), earlier, an_event("Failed")).build("default", "p1")
    assert [event.words for event in facts.events or ()] == ["Failed: words of Failed"]
    assert facts.is_latest
    assert facts.objects is not None
    assert facts.objects.find(kinds.POD, "p1", "default")


@pytest.mark.parametrize(
    ("fields", "is_problem"),
    [
        ({}, True),
        ({"source": {"component": "attachdetach-controller"}}, True),
        ({"source": {"component": "default-scheduler"}}, False),
        ({"type": "Normal"}, False),
        ({"lastTimestamp": ""}, False),
    ],
)
def test_warnings_of_those_that_start_a_pod_are_its_problems(fields: Object, *, is_problem: bool) -> None:
    event = an_event("FailedMount", 5, **fields)
    reporter = event["source"]["component"]
    problem = ObjectProblem(reason="FailedMount", message="words of FailedMount", at=to_time(5), reported_by=reporter)
    assert to_kubelet_problem(parse_event(event)) == (problem if is_problem else None)
    pod = collect_facts(a_pod(node="n1"), event).build("default", "p1").pod
    assert pod
    assert list(pod.problems) == ([problem] if is_problem else [])


def test_an_event_without_a_reason_is_a_failure() -> None:
    problem = to_kubelet_problem(parse_event(an_event("")))
    assert problem
    assert problem.reason == "Failed"


def test_problems_of_containers_come_before_those_of_events() -> None:
    pod = a_pod(node="n1")
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pod["status"]["containerStatuses"] = [{"name": "main", **waiting}]
    observed = collect_facts(pod, an_event("FailedMount")).build("default", "p1").pod
    assert observed
    assert [problem.reason for problem in observed.problems] == ["ImagePullBackOff", "FailedMount"]
    assert observed.source == Evidence("pod", "/api/v1/namespaces/default/pods/p1", NOW)


def test_a_pod_on_a_node_has_the_devices_of_its_annotations() -> None:
    for node, uuids in (("n1", ["GPU-1"]), ("", [])):
        pod = a_pod(node=node)
        pod["metadata"]["annotations"] = {
            "hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,1000,10:;",
        }  # fmt: skip
        observed = collect_facts(pod).build("default", "p1").pod
        assert observed
        assert [device.uuid for device in observed.devices] == uuids


@pytest.mark.parametrize("reason", ["FailedCreate", "FailedCreatePod"])
def test_a_pod_that_the_api_server_refused_is_gone(reason: str) -> None:
    event = an_event(reason, 7, source={"component": "job-controller"})
    facts = collect_facts(a_pod(), event, an_event("Other", 9)).build("default", "p1")
    problem = ObjectProblem(reason=reason, message=f"words of {reason}", at=to_time(7), reported_by="job-controller")
    source = to_event_evidence(parse_event(event), EVENTS)
    assert facts.owner_problem == OwnerProblem("job-controller", problem, source)
    assert facts.pod
    assert facts.pod.is_gone


def test_a_refusal_without_a_reporter_is_one_of_kubectl() -> None:
    problem = collect_facts(a_pod(), an_event("FailedCreate", source={})).build("default", "p1").owner_problem
    assert problem
    assert problem.workload == "kubectl"


@pytest.mark.parametrize("event", [an_event("FailedScheduling"), an_event("FailedCreate", lastTimestamp="")])
def test_other_events_are_no_refusal_of_the_pod(event: Object) -> None:
    facts = collect_facts(a_pod(), event).build("default", "p1")
    assert facts.owner_problem is None
    assert facts.pod
    assert not facts.pod.is_gone


def a_pod_with_volumes(*claims: str) -> Object:
    pod = a_pod()
    pod["spec"]["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return pod


def test_claims_are_those_that_the_pod_names() -> None:
    local = an_object("StorageClass", "local", "storage.k8s.io/v1", "", volumeBindingMode="WaitForFirstConsumer")
    bound = an_object(
        "PersistentVolumeClaim", "a", spec={"storageClassName": "local", "volumeName": "pv"}, status={"phase": "Bound"}
    )
    other = an_object("PersistentVolumeClaim", "b", namespace="other", status={"phase": "Bound"})
    claims = collect_facts(a_pod_with_volumes("a", "b"), bound, other, local).build("default", "p1").claims
    assert claims is not None
    assert [(claim.name, claim.phase, claim.volume, claim.waits_for_pod, claim.source.record) for claim in claims] == [
        ("a", "Bound", "pv", True, "/api/v1/namespaces/default/persistentvolumeclaims/a"),
        ("b", "", "", None, "/api/v1/namespaces/default/persistentvolumeclaims/b"),
    ]


def test_claims_are_open_where_none_was_read() -> None:
    facts = collect_facts(a_pod_with_volumes("a")).build("default", "p1", a_summary())
    assert facts.claims is None
    assert Unknown("claims", "not-given") in facts.unknown
    assert collect_facts(a_pod(), unread=(kinds.VOLUME_CLAIM,)).build("default", "p1").claims == []


def test_quotas_are_those_of_the_namespace() -> None:
    status = {"hard": {"requests.cpu": "4"}, "used": {"requests.cpu": 3}}
    objects = [
        a_pod(), an_object("ResourceQuota", "q", status=status), an_object("ResourceQuota", "r", namespace="other"),
    ]  # fmt: skip
    quotas = collect_facts(*objects).build("default", "p1").quotas
    assert quotas is not None
    assert [(quota.name, quota.hard, quota.used, quota.source.record) for quota in quotas] == [
        ("q", {"requests.cpu": "4"}, {"requests.cpu": "3"}, "/api/v1/namespaces/default/resourcequotas/q")
    ]
    assert collect_facts(*objects, unread=(kinds.RESOURCE_QUOTA,)).build("default", "p1").quotas is None


def test_nodes_are_those_with_a_name() -> None:
    nameless = a_node()
    nameless["metadata"]["name"] = ""
    facts = collect_facts(a_pod(), a_node("n1"), nameless, a_node("n2")).build("default", "p1")
    assert [(node.name, node.source) for node in facts.nodes or ()] == [
        (name, Evidence("node", f"/api/v1/nodes/{name}", NOW)) for name in ("n1", "n2")
    ]
    assert collect_facts(a_pod(), nameless).build("default", "p1").nodes is None


@pytest.mark.parametrize(
    ("has_attempt", "objects", "unknown"),
    [
        (True, [a_node()], ["schedulers"]),
        (False, [a_node()], ["attempt", "schedulers"]),
        (True, [], ["nodes", "schedulers"]),
    ],
)
def test_facts_that_a_case_does_not_have_are_unknown(
    has_attempt: bool, objects: list[Object], unknown: list[str]
) -> None:
    facts = collect_facts(a_pod(), *objects).build("default", "p1", a_summary() if has_attempt else None)
    assert facts.unknown == [Unknown(subject, "not-given") for subject in unknown]


@pytest.mark.parametrize(
    ("changes", "is_judged"),
    [
        ({}, True),
        ({"status": {"phase": "Running"}}, True),
        ({"status": {"phase": "Succeeded"}}, False),
        ({"status": {"phase": "Failed"}}, False),
        ({"spec": {"nodeName": "n1", "containers": [{"name": "main"}]}}, False),
        # A pod of which only events were read would fit everywhere.
        ({"spec": {}}, False),
    ],
)
def test_a_pod_is_judged_while_it_waits(changes: Object, *, is_judged: bool) -> None:
    tainted = a_node(taints=[{"key": "k", "effect": "NoSchedule"}])
    facts = collect_facts(a_pod() | changes, tainted)
    judged = facts.judge("default", "p1")
    assert (judged is not None) is is_judged
    assert [row.name for row in facts.list_nodes("default", "p1")] == (["n1"] if is_judged else [])
    if judged:
        assert (list(judged.fitting), judged.total) == ([], 1)


def test_a_pod_is_not_judged_without_nodes_and_not_without_itself() -> None:
    alone, absent = collect_facts(a_pod()), collect_facts(a_node())
    for facts in (alone, absent):
        assert facts.judge("default", "p1") is None
        assert facts.list_nodes("default", "p1") == []
        assert facts.list_notes("default", "p1") == []


def list_notes(*objects: Object) -> list[str]:
    return [note.en for note in collect_facts(*objects, a_node(gpu="1")).list_notes("default", "p1")]


def test_notes_name_what_no_scheduler_reads_of_a_pod_and_of_the_object_that_made_it() -> None:
    """HAMi reads the policy of devices from `hami.io/gpu-scheduler-policy` of the pod."""
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    assert list_notes(pod) == []
    job = an_object("Job", "train", "batch/v1")
    job["metadata"]["annotations"] = {"hami.io/gpu-scheduler-policy": "binpack"}
    (note,) = list_notes(add_owner(pod, "Job", "train", "batch/v1"), job)
    assert "hami.io/gpu-scheduler-policy" in note
    assert "train" in note
    pod["metadata"]["annotations"] = {"hami.io/gpu-schedule-policy": "binpack"}
    (note,) = list_notes(pod)
    assert "hami.io/gpu-scheduler-policy" in note
    assert list_notes(pod | {"spec": {}}) == []


def test_the_maker_of_a_pod_is_the_last_of_its_owners() -> None:
    deployment = an_object("Deployment", "web", "apps/v1")
    deployment["metadata"]["annotations"] = {"a": "b"}
    replicas = add_owner(an_object("ReplicaSet", "web-1", "apps/v1"), "Deployment", "web")
    pod = add_owner(a_pod(), "ReplicaSet", "web-1")
    assert find_maker(collect_objects([deployment, replicas, pod]), pod) == PodOwner("Deployment", "web", {"a": "b"})
    assert find_maker(collect_objects([replicas, pod]), pod) == PodOwner("ReplicaSet", "web-1", {})
    assert find_maker(collect_objects([pod]), pod) is None
    assert find_maker(collect_objects([a_pod()]), a_pod()) is None


def test_a_pod_with_a_gate_is_gated() -> None:
    pod = a_pod()
    assert not is_gated(pod)
    pod["spec"]["schedulingGates"] = [{"name": "quota"}]
    assert is_gated(pod)


def test_indices_in_names_of_members_count_as_numbers() -> None:
    members = [a_pod(name) for name in ("ring-10", "ring-2", "ring-1", "ring-11")]
    names = [pod["metadata"]["name"] for pod in sort_members(members)]
    assert names == ["ring-1", "ring-2", "ring-10", "ring-11"]


def a_member(name: str, *, node: str = "", cpu: str = "5") -> Object:
    """A pod of which a node of 8 CPU takes one."""
    return a_pod(name, node=node, cpu=cpu)


def judge_group(nodes: int, minimum: int, *members: Object) -> JudgedGang | None:
    running = [member for member in members if "nodeName" in member["spec"]]
    judge = build_case_judge(collect_objects([*(a_node(f"n{number}") for number in range(nodes)), *running]), NOW)
    assert judge
    return judge_members(judge, Group("KAI", "ring", "minMember", minimum, members=members))


@pytest.mark.parametrize(
    ("nodes", "minimum", "members", "expected"),
    [
        # Each node takes one member: those that have to start together, fit, and the first that does not.
        (1, 2, [a_member("r-10"), a_member("r-9")], (2, 1, "r-10")),
        (2, 2, [a_member("r-10"), a_member("r-9")], None),
        (2, 0, [a_member("r-1"), a_member("r-2"), a_member("r-3")], (3, 2, "r-3")),
        (2, 2, [a_member("r-1"), a_member("r-2"), a_member("r-3")], None),
        # A member with a node is one of the minimum.
        (2, 3, [a_member("r-1", node="n0"), a_member("r-2"), a_member("r-3")], (2, 1, "r-3")),
        (2, 0, [a_member("r-1", node="n0"), a_member("r-2"), a_member("r-3")], (2, 1, "r-3")),
        # One that is missing, or more members than were made: nothing that nodes could change.
        (1, 2, [a_member("r-1", node="n0"), a_member("r-2")], None),
        (1, 3, [a_member("r-1"), a_member("r-2")], None),
        (1, 0, [a_member("r-1", cpu="9")], None),
    ],
)
def test_the_members_that_the_minimum_lacks_are_judged_together(
    nodes: int, minimum: int, members: list[Object], expected: tuple[int, int, str] | None
) -> None:
    gang = judge_group(nodes, minimum, *members)
    assert (gang and (gang.members, gang.fitting, gang.member)) == expected


def test_a_group_with_a_gated_member_is_not_judged() -> None:
    gated = a_member("r-2")
    gated["spec"]["schedulingGates"] = [{"name": "quota"}]
    assert judge_group(1, 2, a_member("r-1"), gated) is None
    assert judge_group(1, 2, a_member("r-1"), a_member("r-2")) is not None


def a_ring(*names: str) -> list[Object]:
    """Members of a group of KAI."""
    pods = [a_member(name) for name in names]
    for pod in pods:
        pod["metadata"]["annotations"] = {"pod-group-name": "ring"}
        pod["spec"]["schedulerName"] = "kai-scheduler"
    group = an_object("PodGroup", "ring", "scheduling.run.ai/v2alpha2", spec={"minMember": len(names)})
    return [group, *pods]


def test_members_of_a_group_have_one_judgement() -> None:
    facts = collect_facts(*a_ring("p1", "p2"), a_node())
    gangs = [facts.build("default", name).gang for name in ("p1", "p2")]
    assert gangs[0]
    assert (gangs[0].members, gangs[0].fitting, gangs[0].member) == (2, 1, "p2")
    assert gangs[1] is gangs[0]


def test_a_gang_is_not_judged_where_it_decides_nothing() -> None:
    ring = a_ring("p1", "p2")
    assert collect_facts(*ring, a_node(), has_gangs=False).build("default", "p1").gang is None
    assert collect_facts(*ring).build("default", "p1").gang is None
    assert collect_facts(a_pod(), a_node()).build("default", "p1").gang is None
    group, first, second = ring
    first["spec"]["nodeName"] = "n1"
    third = a_ring("p3")[1]
    assert collect_facts(group, first, second, third, a_node()).build("default", "p1").gang is None
