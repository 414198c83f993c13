"""Questions about the pod itself, each answered from a few facts.

Texts of the API server, the kubelet and the controller of attachments are those of Kubernetes (apiserver's admission
plugins, kubelet's ``kuberuntime`` and ``volumemanager``, ``attachdetach/reconciler``).
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.evidence import Evidence, Unknown
from engine.diagnosis.facts import DiagnosisFacts, OwnerProblem, PodOnCluster, Quota
from engine.diagnosis.outcome import FoundObstacle, TreeStep
from engine.diagnosis.pod_steps import answer_pod_questions
from engine.snapshot.case_objects import collect_objects
from schemas.events import AttemptSummarized, BindOutcome, ObjectProblem, PickedDevice
from tests.support.builders.events import STARTED, a_summary
from tests.support.builders.layer_objects import a_node, to_english

POD = Evidence("pod", "/pods/job-0", STARTED + timedelta(minutes=1), "api-server")
OWNER = Evidence("event", "/events/job", STARTED, "job-controller")
UNKNOWN = [Unknown(subject, "not-given") for subject in ("pod", "owner", "observations", "findings", "events", "nodes")]


def a_pod(**fields: Any) -> PodOnCluster:
    return PodOnCluster(POD, **{"phase": "Pending"} | fields)


def answer(pod: PodOnCluster | None = None, **more: Any) -> dict[str, TreeStep]:
    facts = DiagnosisFacts("default", "lab", "job-0", STARTED, pod=pod, **{"unknown": UNKNOWN} | more)
    return {step.question: step for step in answer_pod_questions(facts)}


def list_subjects(step: TreeStep) -> list[str]:
    return [unknown.subject for unknown in step.not_known]


def translate(obstacle: FoundObstacle) -> dict[str, str | int]:
    return {name: to_english(word) for name, word in obstacle.words.items()}


@pytest.mark.parametrize(
    ("pod", "attempt", "expected"),
    [
        (a_pod(), None, ("yes", [])),
        (None, a_summary(), ("yes", ["pod", "owner"])),
        (None, None, ("not known", ["pod", "owner"])),
        (a_pod(is_gone=True), None, ("no", ["pod", "owner"])),
        (a_pod(is_gone=True), a_summary(), ("no", ["pod", "owner"])),
    ],
)
def test_a_pod_exists_by_its_object_or_by_an_attempt(
    pod: PodOnCluster | None, attempt: AttemptSummarized | None, expected: tuple[str, list[str]]
) -> None:
    step = answer(pod, attempt=attempt)["PodExists"]
    assert (step.answer, list_subjects(step)) == expected
    assert step.is_end == (expected[0] == "no")
    if expected[0] == "no":
        [obstacle] = step.obstacles
        assert (obstacle.code, obstacle.words) == ("PodMissing", {"namespace": "lab", "name": "job-0"})
        assert (obstacle.evidence, step.evidence) == ([POD], [POD])


@pytest.mark.parametrize(
    ("seconds", "is_lost"),
    [(None, True), (-1, False), (0, True), (5, True)],
    ids=["no time", "before", "same", "after"],
)
def test_a_pod_without_an_object_lost_its_place_after_its_latest_attempt(seconds: int | None, is_lost: bool) -> None:
    """Events have whole seconds, attempts their fractions: 03:06:23 is the second of 03:06:23.217."""
    time = None if seconds is None else STARTED.replace(microsecond=0) + timedelta(seconds=seconds)
    event = Evidence("event", "/events/1", time, "volcano", words="Evict: Pod is evicted, because of preempt")
    step = answer(attempt=a_summary(), events=[event])["PodExists"]
    assert (step.answer, step.is_end) == (("no", True) if is_lost else ("yes", False))
    # Without an attempt nothing came before.
    assert answer(events=[event])["PodExists"].answer == "no"


def explain_owner(message: str, quotas: Sequence[Quota] = ()) -> FoundObstacle:
    """Explain a pod that its Job could not create."""
    problem = OwnerProblem("Job/train", ObjectProblem(reason="FailedCreate", message=message, at=STARTED), OWNER)
    step = answer(a_pod(is_gone=True), owner_problem=problem, quotas=quotas)["PodExists"]
    [obstacle] = step.obstacles
    assert (step.answer, step.is_end, step.evidence) == ("no", True, [POD, OWNER])
    assert (obstacle.words["workload"], obstacle.words["namespace"]) == ("Job/train", "lab")
    return obstacle


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged', "PodSecurityRefused"),
        ('Internal error occurred: failed calling webhook "vgpu.hami.io": connection refused', "WebhookUnreachable"),
        ('Pod "a" is invalid: spec.containers[0].image: Required value', "PodInvalid"),
        ('pods "a" is forbidden: error looking up service account lab/robot: not found', "ServiceAccountMissing"),
        ('pods "a" is forbidden: no PriorityClass with name high was found', "PriorityClassMissing"),
        ('admission webhook "vgpu.hami.io" denied the request: no', "PodDeniedByHami"),
        ('admission webhook "a.example.com" denied the request: no', "PodDeniedByRule"),
        ('pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi', "LimitRangeBroken"),
        ("etcdserver: request timed out", "OwnerRefused"),
    ],
)
def test_what_refused_the_pod_is_read_from_the_words_about_its_owner(message: str, code: str) -> None:
    obstacle = explain_owner(message)
    assert (obstacle.code, obstacle.words["words"], obstacle.evidence) == (code, message, [OWNER])


EXCEEDED = (
    'pods "a" is forbidden: exceeded quota: team, requested: limits.cpu=4,requests.nvidia.com/gpu=2, '
    "used: limits.cpu=3,requests.nvidia.com/gpu=8, limited: limits.cpu=8,requests.nvidia.com/gpu=8"
)


def a_quota(name: str, hard: dict[str, str], used: dict[str, str]) -> Quota:
    return Quota(name, Evidence("quota", f"/quotas/{name}"), hard, used)


def test_the_fullest_resource_of_a_quota_that_was_read_is_named() -> None:
    amounts = {"limits.cpu": "8", "requests.nvidia.com/gpu": "8", "pods": "0", "memory": "lots"}
    other = a_quota("team-b", amounts, {"limits.cpu": "8"})
    quota = a_quota("team", amounts, {"limits.cpu": "3", "requests.nvidia.com/gpu": "6", "pods": "5"})
    obstacle = explain_owner(EXCEEDED, [other, quota])
    assert (obstacle.code, obstacle.clauses) == ("QuotaExceeded", ["amounts"])
    words = {name: obstacle.words[name] for name in ("resource", "used", "hard")}
    assert words == {"resource": "requests.nvidia.com/gpu", "used": 6, "hard": 8}
    assert obstacle.numbers == {"requests.nvidia.com/gpu.used": 6, "requests.nvidia.com/gpu.hard": 8}
    assert obstacle.evidence == [OWNER, quota.source]


def test_a_resource_of_which_a_quota_reports_no_use_is_unused() -> None:
    quota = a_quota("team", {"limits.cpu": "8", "pods": "5"}, {"pods": "1"})
    obstacle = explain_owner(EXCEEDED, [quota])
    assert (obstacle.words["resource"], obstacle.words["used"]) == ("pods", 1)


@pytest.mark.parametrize("quotas", [[], [a_quota("team-b", {"pods": "1"}, {})], [a_quota("team", {"pods": "0"}, {})]])
def test_the_refusals_own_amounts_serve_where_the_quota_was_not_read(quotas: list[Quota]) -> None:
    obstacle = explain_owner(EXCEEDED, quotas)
    assert (obstacle.code, obstacle.clauses, obstacle.words["quota"]) == ("QuotaExceeded", ["exceeded"], "team")
    exceeded = to_english(obstacle.words["exceeded"])
    assert exceeded == "limits.cpu 3 of 8 used, 4 asked, requests.nvidia.com/gpu 8 of 8 used, 2 asked"
    assert obstacle.evidence == [OWNER]


def test_a_refusal_by_a_quota_names_up_to_three_resources_whose_amounts_it_has() -> None:
    used, limited = "a=5,b=5,d=5,e=5,f=5", "a=6,c=6,d=6,e=6,f=6"
    message = f"exceeded quota: team, requested: a=1,b=2,c=3,d=4,e=5,f=6, used: {used}, limited: {limited}"
    exceeded = to_english(explain_owner(message).words["exceeded"])
    assert exceeded == "a 5 of 6 used, 1 asked, d 5 of 6 used, 4 asked, e 5 of 6 used, 5 asked"
    assert explain_owner("exceeded quota: team, cut").clauses == []


BOUND = BindOutcome(node="node1", bound=True, ended_at=STARTED)
NOT_BOUND = BindOutcome(node="node1", bound=False, error="no", ended_at=STARTED)
FROM_BEFORE = PodOnCluster(Evidence("pod", "p", STARTED), phase="Pending")


@pytest.mark.parametrize(
    ("pod", "attempt", "expected", "is_end"),
    [
        (a_pod(), None, "yes", False),
        (None, None, "not known", False),
        (None, a_summary(), "yes", False),
        (a_pod(phase="Succeeded"), None, "no", True),
        (a_pod(phase="Failed"), None, "no", True),
        (a_pod(is_being_deleted=True), None, "no", True),
        (a_pod(node="node1"), None, "no", False),
        # A bind shows the place, unless the pod was observed without one after it.
        (None, a_summary(bind=BOUND), "no", True),
        (FROM_BEFORE, a_summary(bind=BOUND), "no", True),
        (PodOnCluster(Evidence("pod", "p"), phase="Pending"), a_summary(bind=BOUND), "no", True),
        (a_pod(), a_summary(bind=BOUND), "yes", False),
        (a_pod(), a_summary(bind=NOT_BOUND), "yes", False),
        (None, a_summary(bind=NOT_BOUND), "yes", False),
    ],
)
def test_a_pod_waits_until_it_has_a_node_or_ends(
    pod: PodOnCluster | None, attempt: AttemptSummarized | None, expected: str, is_end: bool
) -> None:
    step = answer(pod, attempt=attempt)["StillWaits"]
    assert (step.answer, step.is_end) == (expected, is_end)
    kinds = [evidence.kind for evidence in step.evidence]
    if attempt and attempt.bind and attempt.bind.bound and expected == "no":
        assert (kinds, list_subjects(step)) == (["bind"], ["pod", "observations"])
    elif pod:
        assert (kinds, list_subjects(step)) == (["pod"], [])
    else:
        assert (kinds, list_subjects(step)) == (["attempt"] if attempt else [], ["pod", "observations"])


def a_problem(reason: str, message: str = "", seconds: float = 0) -> ObjectProblem:
    return ObjectProblem(reason=reason, message=message, at=STARTED + timedelta(seconds=seconds), reported_by="kubelet")


def start(*problems: ObjectProblem, facts: dict[str, Any] | None = None, **fields: Any) -> TreeStep:
    """Answer whether the pod's node starts it."""
    return answer(a_pod(node="node1", problems=problems, **fields), **facts or {})["Starts"]


def get_obstacle(step: TreeStep) -> FoundObstacle:
    [obstacle] = step.obstacles
    assert (step.answer, step.is_end, obstacle.nodes) == ("no", True, ["node1"])
    return obstacle


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (a_problem("FailedCreatePodSandBox", 'no runtime for "nvidia" is configured'), "RuntimeNotConfigured"),
        (a_problem("StartError", "nvml error: driver/library version mismatch: unknown"), "DriverMismatch"),
        (a_problem("RunContainerError", "requirement error: unsatisfied condition: cuda>=12.4"), "ImageNeedsDriver"),
        (a_problem("Failed", "nvidia-container-cli: initialization error: nvml error"), "ToolkitFailed"),
        (a_problem("Failed", "unresolvable CDI devices nvidia.com/gpu=0: unknown"), "ToolkitFailed"),
        (a_problem("Failed", 'exec: "nvidia-container-runtime": executable file not found'), "RuntimeMissing"),
        (a_problem("FailedPostStartHook", "command exited with 1"), "HookFailed"),
        (a_problem("FailedPrepareDynamicResources", "claim not ready"), "ClaimNotPrepared"),
        (a_problem("ErrImagePull", "not found"), "ImageNotPulled"),
        (a_problem("ImagePullBackOff", 'Back-off pulling image "a"'), "ImageNotPulled"),
        (a_problem("FailedMount", "timed out"), "VolumeNotMounted"),
        (a_problem("FailedAttachVolume", "rpc error"), "VolumeNotMounted"),
        (a_problem("Strange"), "KubeletRefused"),
    ],
)
def test_what_keeps_the_node_from_starting_the_pod_is_read_from_the_kubelets_words(
    problem: ObjectProblem, code: str
) -> None:
    step = start(problem)
    obstacle = get_obstacle(step)
    assert obstacle.code == code
    text = f"{problem.reason}: {problem.message}" if problem.message else problem.reason
    assert step.evidence == [Evidence("pod", POD.record, STARTED, "kubelet", words=text)]
    words = {"node": "node1", "words": text.removesuffix(": unknown"), "namespace": "lab", "name": "job-0"}
    assert translate(obstacle) == words


ABSENT_KEYS = 'MountVolume.SetUp failed for volume "keys" : secret "train-keys" not found'
ABSENT_MAP = 'MountVolume.SetUp failed for volume "conf" : configmap "train" not found'
ELSEWHERE = "a pod on another node"
USED = 'Multi-Attach error for volume "pvc-7" Volume is already used by pod(s) job-1, job-2'
USED_ELSEWHERE = 'Multi-Attach error for volume "pvc-7" Volume is already used by 2 pod(s) in different namespaces'
EXCLUSIVE = 'Multi-Attach error for volume "pvc-7" Volume is already exclusively attached to one node'


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (ABSENT_KEYS, "MountedObjectMissing", {"volume": "keys", "kind": "Secret", "object": "train-keys"}),
        (ABSENT_MAP, "MountedObjectMissing", {"volume": "conf", "kind": "ConfigMap", "object": "train"}),
        (USED, "VolumeAttachedElsewhere", {"volume": "pvc-7", "holder": "job-1, job-2"}),
        (EXCLUSIVE, "VolumeAttachedElsewhere", {"volume": "pvc-7", "holder": ELSEWHERE}),
        (USED_ELSEWHERE, "VolumeAttachedElsewhere", {"volume": "pvc-7", "holder": ELSEWHERE}),
        (f"{USED} and 1 pod(s) in different namespaces", "VolumeAttachedElsewhere", {"holder": "job-1, job-2"}),
        # Words that name too little make no sentence about the volume.
        ("Multi-Attach error for a volume", "VolumeNotMounted", {}),
        (': secret "a"', "VolumeNotMounted", {}),
    ],
)
def test_a_volume_is_named_with_what_is_in_its_way(message: str, code: str, words: dict[str, str]) -> None:
    obstacle = get_obstacle(start(a_problem("FailedMount", message)))
    written = translate(obstacle)
    assert (obstacle.code, {name: written.get(name) for name in words}) == (code, words)


CAUSE = a_problem("FailedMount", ABSENT_KEYS, 10)


@pytest.mark.parametrize(
    ("problems", "reason"),
    [
        # That a container is started again later names no cause, and neither does a wait for the same volume.
        ([CAUSE, a_problem("BackOff", "Back-off restarting failed container", 20)], "FailedMount"),
        ([a_problem("BackOff", "x", 20), a_problem("Unhealthy", "x", 30)], "Unhealthy"),
        ([CAUSE, a_problem("FailedAttachVolume", "timed out waiting for the condition", 20)], "FailedMount"),
        (
            [
                a_problem("FailedAttachVolume", "timed out waiting for the condition", 20),
                a_problem("FailedMount", "timed out waiting for the condition", 10),
                a_problem("BackOff", "x", 30),
            ],
            "FailedAttachVolume",
        ),
        ([CAUSE, a_problem("ErrImagePull", "no", 11)], "ErrImagePull"),
    ],
)
def test_the_latest_problem_that_names_a_cause_counts(problems: list[ObjectProblem], reason: str) -> None:
    words = get_obstacle(start(*problems)).words["words"]
    assert isinstance(words, str)
    assert words.partition(":")[0] == reason


@pytest.mark.parametrize(
    ("reason", "message", "has_run", "code"),
    [
        ("CrashLoopBackOff", "back-off 5m0s", True, "ContainerEnds"),
        ("Error", "exit 1", True, "ContainerEnds"),
        ("OOMKilled", "", True, "ContainerEnds"),
        ("CrashLoopBackOff", "back-off 5m0s", None, "KubeletRefused"),
        ("ErrImagePull", "no", True, "ImageNotPulled"),
        ("RunContainerError", "", None, "ContainerNotStarted"),
        ("StartError", "started again 3 times", True, "ContainerNotStarted"),
        ("StartError", "started again 3 times: no such file", None, "KubeletRefused"),
    ],
)
def test_a_container_that_ends_is_not_one_that_does_not_start(
    reason: str, message: str, has_run: bool | None, code: str
) -> None:
    assert get_obstacle(start(a_problem(reason, message), phase="Running", has_run=has_run)).code == code


@pytest.mark.parametrize(
    ("fields", "expected", "subjects"),
    [
        ({"phase": "Running"}, "yes", ["findings"]),
        ({"phase": "Succeeded"}, "yes", ["findings"]),
        ({"phase": "Failed", "problems": [a_problem("Error")], "has_run": True}, "yes", ["findings"]),
        ({}, "not known", ["events"]),
    ],
)
def test_a_pod_without_a_problem_starts_or_is_still_starting(
    fields: dict[str, Any], expected: str, subjects: list[str]
) -> None:
    finding = Evidence("finding", "f")
    step = answer(a_pod(node="node1", **fields), findings=[finding])["Starts"]
    assert (step.answer, step.is_end, list_subjects(step)) == (expected, True, subjects)
    assert (step.evidence, step.obstacles) == ([POD, finding], ())


def test_a_pod_without_a_node_is_not_asked_whether_it_starts() -> None:
    assert list(answer(a_pod(problems=[a_problem("BackOff")]))) == ["PodExists", "StillWaits", "FreeOfGates"]
    assert list(answer()) == ["PodExists", "StillWaits", "FreeOfGates"]


def test_an_allocation_that_hamis_plugin_reports_as_failed() -> None:
    obstacle = get_obstacle(start(bind_phase="failed"))
    assert (obstacle.code, obstacle.words) == ("AllocationFailed", {"node": "node1"})
    assert start(bind_phase="success").answer == "not known"


DEVICE = PickedDevice(container=0, uuid="GPU-7", memory_mib=1000, cores_percent=10)


@pytest.mark.parametrize(
    ("assigned", "phase", "devices", "clauses"),
    [
        ("node2", "Pending", [], []),
        ("node2", "Running", [DEVICE], ["devices"]),
        # Of a pod that has ended it does not matter any more.
        ("node2", "Succeeded", [], None),
        ("node1", "Pending", [], None),
        ("", "Pending", [], None),
    ],
)
def test_devices_that_hami_chose_on_another_node(
    assigned: str, phase: str, devices: list[PickedDevice], clauses: list[str] | None
) -> None:
    """HAMi's scheduler writes the node of the devices into ``hami.io/vgpu-node``."""
    annotations = {"hami.io/vgpu-node": assigned} if assigned else {}
    step = start(phase=phase, devices=devices, annotations=annotations)
    if clauses is None:
        assert not step.obstacles
        return
    obstacle = get_obstacle(step)
    assert (obstacle.code, obstacle.clauses, obstacle.words["assigned"]) == ("DevicesElsewhere", clauses, "node2")


@pytest.mark.parametrize(
    ("objects", "count"),
    [([a_node("node2"), a_node("node3")], 2), ([a_node("node1"), a_node("node2")], None), ([], None)],
)
def test_a_node_that_does_not_exist_starts_nothing(objects: list[dict[str, Any]], count: int | None) -> None:
    step = start(facts={"objects": collect_objects(objects)})
    if count is None:
        assert (step.answer, step.obstacles) == ("not known", ())
        return
    obstacle = get_obstacle(step)
    assert (obstacle.code, obstacle.words) == ("NodeNotThere", {"node": "node1", "count": count})
