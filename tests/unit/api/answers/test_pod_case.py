"""Objects around a pod: the API's answer is that of files with the same objects, bounded, and within its rights."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from api.answers.case_judges import CaseJudges
from api.answers.circumstances import read_circumstances
from api.answers.fact_collector import CollectedFacts
from api.answers.object_lists import MAX_EVENTS, ObjectLists
from api.answers.pod_case import read_pod_case
from api.handlers.fact_redaction import HIDDEN_HOLDER, hide_others
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layer_waits import find_layer_of_code
from engine.diagnosis.outcome import DeviceExample, DevicesOfReason, FoundObstacle, JudgedPod
from engine.diagnosis.tree import diagnose
from engine.snapshot.needed_kinds import ListedKind
from ingest.cases.answers import diagnose_pods, explain_pod
from ingest.cases.read_case import ClusterCase, build_case
from runtime.kubernetes.errors import KubeApiError
from schemas.answers.diagnosis import Diagnosis, InBothLanguages
from schemas.json_types import Json
from tests.support.builders import claims
from tests.support.builders.layer_objects import NOW, a_node, a_pod, an_event
from tests.support.builders.simulations import a_gpu_node
from tests.support.fakes.cluster_objects import ClusterObjects
from tests.support.harness.index_filling import an_attempt

GATE = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
EIGHT = {"nvidia.com/gpu": "8"}
ASKS_8 = {"containers": [{"name": "main", "resources": {"limits": EIGHT, "requests": EIGHT}}]}
KAIS_ATTEMPT = an_attempt("lab/job-0", nodes=("n1", "n2"))
TOO_LITTLE = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def an_object(version: str, kind: str, name: str, namespace: str = "lab", **fields: Any) -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def a_workload(message: str) -> Json:
    condition = {"type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota", "message": message}
    workload = an_object("kueue.x-k8s.io/v1beta2", "Workload", "w", spec={"queueName": "night"},
                         status={"conditions": [condition]})  # fmt: skip
    workload["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "job-0", "controller": True}]
    return workload


KUEUE = [
    a_pod(spec=GATE),
    a_workload("insufficient unused quota for nvidia.com/gpu in flavor big, 6 more needed"),
    an_object("kueue.x-k8s.io/v1beta2", "LocalQueue", "night", spec={"clusterQueue": "batch"}),
    an_object("kueue.x-k8s.io/v1beta2", "ClusterQueue", "batch", "", status={"pendingWorkloads": 3}),
]
NATIVE = {"schedulingGroup": {"podGroupName": "ring"}}
COMPLETE_AT_4 = {"schedulingPolicy": {"gang": {"minCount": 4}}}
ASKS_1 = {"nvidia.com/gpu": "1"}
GANG = "GangTooLarge"


def build_ring(**spec: Any) -> list[Json]:
    """Build a group of three pods that start together, each with one GPU if nothing else is named."""
    asks = spec or {"containers": [{"name": "main", "resources": {"limits": ASKS_1, "requests": ASKS_1}}]}
    labels = {"scheduling.x-k8s.io/pod-group": "ring"}
    members = [a_pod(f"job-{number}", metadata={"labels": labels}, spec=asks) for number in range(3)]
    return [an_object("scheduling.x-k8s.io/v1alpha1", "PodGroup", "ring", spec={"minMember": 3}), *members]


def build_claiming_ring() -> list[Json]:
    """Build a group of three pods with a claim each."""
    group, *members = build_ring(containers=[{"name": "main", "resources": {}}])
    wanted = []
    for number, member in enumerate(members):
        member["spec"] = member["spec"] | {"resourceClaims": [{"name": "gpu", "resourceClaimName": f"gpu-{number}"}]}
        claim = claims.a_claim(name=f"gpu-{number}")
        claim["metadata"]["namespace"] = "lab"
        wanted.append(claim)
    return [group, *members, *wanted]


def build_slices(*more: Json) -> list[Json]:
    """Build slices of two nodes with one device each."""
    return [claims.a_slice(claims.a_device("gpu-0"), *more, node=node) for node in ("n1", "n2")]


CASES: dict[str, tuple[list[Json], str]] = {
    "Kueue's queue has too little quota": (KUEUE, "KueueWaitsForQuota"),
    "a native gang lacks members": (
        [
            a_pod(spec=NATIVE),
            a_pod("job-1", spec=NATIVE),
            an_object("scheduling.k8s.io/v1alpha2", "PodGroup", "ring", spec=COMPLETE_AT_4),
        ],
        "GangIncomplete",
    ),
    "no node is large enough": (
        [
            a_pod(spec=ASKS_8, refusal=TOO_LITTLE),
            an_event("FailedScheduling", TOO_LITTLE),
            a_node("n1", allocatable={"nvidia.com/gpu": "4"}),
        ],
        "ResourceNeverEnough",
    ),
    "its gang fits in part": (
        [*build_ring(), a_node("n1", allocatable=ASKS_1), a_node("n2", allocatable=ASKS_1)],
        GANG,
    ),
    "its gang's claims get devices in part": (
        [*build_claiming_ring(), a_node("n1"), a_node("n2"), claims.a_class(), *build_slices()],
        GANG,
    ),
    "its kubelet refused it": (
        [
            a_pod(
                spec={"nodeName": "n1"},
                status={
                    "phase": "Failed",
                    "reason": "OutOfcpu",
                    "message": "Node didn't have enough resource: cpu, requested: 4000, used: 2000, capacity: 4000",
                },
            )
        ],
        "KubeletOutOfResource",
    ),
    "its claim does not exist": (
        [a_pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "fast"}]})],
        "DeviceClaimMissing",
    ),
    "its volume's claim does not exist": (
        # Files without any claim do not say that there is none.
        [
            a_pod(spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}),
            an_object("v1", "PersistentVolumeClaim", "other", status={"phase": "Bound"}),
        ],
        "ClaimMissing",
    ),
    "an autoscaler cannot help": (
        [
            a_pod(spec=ASKS_8, refusal=TOO_LITTLE),
            an_event("FailedScheduling", TOO_LITTLE),
            an_event(
                "NotTriggerScaleUp",
                "pod didn't trigger scale-up: 1 max node group size reached",
                reporter="cluster-autoscaler",
                type="Normal",
            ),
            a_node("n1"),
        ],
        "ResourceNotOffered",
    ),
}


def read_case(objects: list[Json]) -> ClusterCase:
    return build_case(objects, (), NOW)


def find_latest(case: ClusterCase, name: str) -> Any:
    pod = case.pods.pods.get(f"lab/{name}")
    return pod.find_latest()[0] if pod else None


def collect(api: ClusterObjects, now: datetime, attempt: Any = None, name: str = "job-0") -> CollectedFacts:
    """Collect the facts as the API does, with the attempt that it has of the index."""
    live = asyncio.run(read_circumstances(api, "lab", name, now, ObjectLists(api), CaseJudges(), attempt))
    facts = DiagnosisFacts(
        "default", "lab", name, now, attempt, pod=live.pod, claims=live.claims, quotas=live.quotas,
        events=live.events, nodes=live.nodes, owner_problem=live.owner_problem, objects=live.objects,
        gang=live.gang, unknown=live.unknown,
    )  # fmt: skip
    return CollectedFacts(facts, live.judged, live.notes)


def diagnose_collected(collected: CollectedFacts) -> Diagnosis:
    return diagnose(collected.facts, None, collected.judged)


@pytest.mark.parametrize("case", CASES)
def test_the_api_answers_as_files_of_the_same_objects_do(case: str) -> None:
    objects, code = CASES[case]
    files = read_case(objects)
    expected = diagnose_pods(files, ["lab/job-0"])[0].diagnosis
    answer = diagnose_collected(collect(ClusterObjects(objects), NOW, find_latest(files, "job-0")))
    assert answer.obstacle
    assert expected.obstacle
    assert (answer.obstacle.code, expected.obstacle.code) == (code, code)
    assert (answer.state, answer.sentence) == (expected.state, expected.sentence)
    assert answer.timeline == expected.timeline
    # Lists have only the code.
    assert find_layer_of_code(code) == answer.layer


def a_hami_pod(**annotations: str) -> Json:
    amounts = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
    spec = {"schedulerName": "hami-scheduler", "containers": [{"name": "main", "resources": {"limits": amounts}}]}
    pod = a_pod(spec=spec)
    pod["metadata"]["annotations"] = annotations
    return pod


OWNED = a_hami_pod()
OWNED["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}]
NOTED: dict[str, tuple[list[Json], str]] = {
    "a misspelt key": ([a_hami_pod(**{"nvidia.com/use-gputyp": "A100"})], "nvidia.com/use-gputype"),
    "a model that no node has": ([a_hami_pod(**{"nvidia.com/use-gputype": "H100"})], "H100"),
    "a UUID that no node has": ([a_hami_pod(**{"nvidia.com/use-gpuuuid": "GPU-0"})], "GPU-0"),
    "annotations on its owner": (
        [
            OWNED,
            an_object(
                "apps/v1", "ReplicaSet", "web",
                metadata={"name": "web", "namespace": "lab", "annotations": {"nvidia.com/use-gputype": "A100"}},
            ),
        ],
        "ReplicaSet",
    ),
    "nothing": ([a_hami_pod()], ""),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTED)
def test_the_api_notes_the_same_unread_words_as_files(case: str) -> None:
    objects, word = NOTED[case]
    objects = [*objects, a_gpu_node("n1", 2)]
    expected = explain_pod(read_case(objects), "lab/job-0").diagnosis.notes
    assert collect(ClusterObjects(objects), NOW).notes == expected
    assert any(word in note.en for note in expected) == bool(word)
    # An attempt with a verdict on each node says nothing about words that HAMi does not read.
    assert collect(ClusterObjects(objects), NOW, KAIS_ATTEMPT).notes == (expected if "owner" not in case else [])


def test_without_the_right_to_queues_the_answer_names_the_gate_and_the_missing_right() -> None:
    answer = diagnose_collected(collect(ClusterObjects(KUEUE, refused=["workloads", "clusterqueues"]), NOW))
    assert answer.obstacle
    assert answer.obstacle.code == "KueueHolds"
    texts = [unknown.text.en for unknown in answer.not_known if unknown.subject == "queues"]
    assert texts == [
        "Not known: the queues, quotas and pod groups that may hold it. The API server refuses it to the API's account."
    ]


def test_without_the_right_to_pods_the_schedulers_counts_stand() -> None:
    objects, _ = CASES["no node is large enough"]
    files = read_case(objects)
    api = ClusterObjects(objects)
    api.refused = {"pods"}
    with pytest.raises(KubeApiError):
        api._list("/api/v1/pods", "")
    attempt = find_latest(files, "job-0")
    collected = collect(api, NOW, attempt)
    assert collected.judged is None


def test_a_cluster_without_kueue_lists_no_queues() -> None:
    api = ClusterObjects([a_pod(), a_node("n1")])
    collect(api, NOW)
    assert not [path for path in api.reads if "kueue" in path or "volcano" in path]


def test_a_pod_whose_scheduler_named_each_node_needs_no_pods_of_the_cluster() -> None:
    """A pod that waits at a gate needs none, either."""
    api = ClusterObjects(KUEUE)
    collect(api, NOW)
    assert "/api/v1/pods" not in api.reads


async def test_lists_are_read_once_for_several_questions() -> None:
    api = ClusterObjects([a_pod(), a_pod("job-1"), a_node("n1")])
    lists, judges = ObjectLists(api), CaseJudges()
    await asyncio.gather(*(read_circumstances(api, "lab", name, NOW, lists, judges) for name in ("job-0", "job-1")))
    assert [api.reads.count(path) for path in ("/apis", "/api/v1/nodes", "/api/v1/pods")] == [1, 1, 1]


class _Endless(ClusterObjects):
    """A server whose list of events has always another page."""

    async def read_page(self, path: str, **query: str | int) -> Json:
        page = await super().read_page(path, **query)
        if path.endswith("/events") and "fieldSelector" not in query:
            first = len(self.reads) * 500
            items = [an_event("Noise", "", pod=f"other-{first + number}") for number in range(500)]
            return {"items": items, "metadata": {"continue": str(first)}}
        return page


async def test_events_are_bounded_and_those_of_the_pod_are_read_by_themselves() -> None:
    api = _Endless([a_pod(), an_event("FailedScheduling", TOO_LITTLE), a_node("n1")])
    live = await read_circumstances(api, "lab", "job-0", NOW, ObjectLists(api))
    assert live.objects
    assert len(live.objects.tables["Event.events.k8s.io"]) == MAX_EVENTS + 1
    assert [event.words for event in live.events or ()] == [f"FailedScheduling: {TOO_LITTLE}"]
    assert ("events", "not-read") in [(unknown.subject, unknown.cause) for unknown in live.unknown]


async def test_a_refusal_is_remembered_and_a_list_forgotten_after_its_time() -> None:
    api = ClusterObjects(KUEUE, refused=["workloads"])
    lists = ObjectLists(api)
    listed = ListedKind("Workload.kueue.x-k8s.io", "/apis/kueue.x-k8s.io/v1beta2/namespaces/lab/workloads")
    for _ in range(3):
        assert (await lists.read(listed)).error
    assert len(api.reads) == 1


def test_others_leave_the_facts_before_anything_is_worded() -> None:
    """A port that a pod of another namespace holds, and a text of the scheduler that names it."""
    ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]
    spec = {"containers": [{"name": "main", "resources": {}, "ports": ports}]}
    secret = a_pod("crown", metadata={"namespace": "vault"}, spec={**spec, "nodeName": "n1"})
    refusal = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    objects = [a_pod(spec=spec, refusal=refusal), secret, a_node("n1"),
               an_event("Preempted", "Preempted by vault/crown on node n1")]  # fmt: skip
    collected = collect(ClusterObjects(objects), NOW)
    assert "vault/crown" in diagnose_collected(collected).model_dump_json()
    hidden = hide_others(collected)
    assert "crown" not in diagnose_collected(hidden).model_dump_json()
    assert diagnose_collected(hidden).obstacle
    assert hide_others(hidden) is not collected


def test_facts_without_others_are_the_same_object() -> None:
    collected = collect(ClusterObjects(KUEUE), NOW)
    assert hide_others(collected) is collected


def test_a_claim_of_another_namespace_that_holds_a_device_is_not_named() -> None:
    def hold(namespace: str) -> FoundObstacle:
        text = InBothLanguages(en=f"in use by claim {namespace}/held, reserved for pod crown", zh="")
        example = DeviceExample("d/p/gpu", "n1", text, 1, namespace)
        return FoundObstacle("DevicesInUse", {"example": text}, devices=[DevicesOfReason("DeviceInUse", 1, [example])])

    collected = collect(ClusterObjects([a_pod(), a_node("n1")]), NOW)
    judged = JudgedPod([hold("vault"), hold("lab")], (), 1, {}, is_certain=True)
    hidden = hide_others(CollectedFacts(collected.facts, judged)).judged
    assert hidden
    theirs, ours = hidden.obstacles
    assert theirs.words["example"] == theirs.devices[0].examples[0].text == HIDDEN_HOLDER
    assert (ours.words, ours.devices) == (hold("lab").words, hold("lab").devices)


@pytest.mark.parametrize("attempt", [None, KAIS_ATTEMPT], ids=["no attempt", "an attempt that names each node"])
def test_a_gang_is_counted_whether_or_not_an_attempt_names_the_nodes(attempt: Any) -> None:
    objects, _ = CASES["its gang fits in part"]
    gang = collect(ClusterObjects(objects), NOW, attempt).facts.gang
    assert gang
    assert (gang.members, gang.fitting, gang.member) == (3, 2, "job-2")


def test_a_claim_of_another_namespace_that_holds_a_gangs_device_is_not_named() -> None:
    secret = claims.a_claim(name="treasure", status=claims.an_allocation("gpu-0", node="n1", pods=["crown"]))
    secret["metadata"]["namespace"] = "vault"
    objects, _ = CASES["its gang's claims get devices in part"]
    collected = collect(ClusterObjects([*objects, secret]), NOW)
    assert "crown" in diagnose_collected(collected).sentence.en
    hidden = diagnose_collected(hide_others(collected)).model_dump_json()
    assert "1 of 3 members fit" in hidden
    assert not [name for name in ("crown", "treasure", "vault") if name in hidden]


async def test_changes_are_suggested_on_the_same_objects_as_the_verdict() -> None:
    """The pod asks for 8 of a node's 4; on a node like it with 8 it would fit, and with 4 it fits this one."""
    pod = a_pod(spec=ASKS_8, refusal=TOO_LITTLE)
    api = ClusterObjects([pod, a_node("n1", allocatable={"nvidia.com/gpu": "4"})])
    case = await read_pod_case(api, ObjectLists(api), "lab", "job-0", lambda _: True)
    suggestions = await CaseJudges().suggest(case, "default", NOW)
    assert suggestions
    assert suggestions.state == "refused"
    edits = [edit for item in suggestions.items for edit in item.edits]
    assert ("request", "8", "4") in [(edit.constraint, edit.before, edit.after) for edit in edits]
    placed = a_pod(spec={**ASKS_8, "nodeName": "n1"})
    api = ClusterObjects([placed, a_node("n1", allocatable={"nvidia.com/gpu": "8"})])
    case = await read_pod_case(api, ObjectLists(api), "lab", "job-0", lambda _: True)
    assert await CaseJudges().suggest(case, "default", NOW) is None
