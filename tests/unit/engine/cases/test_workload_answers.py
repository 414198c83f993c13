"""Workloads of a case: their pods by what keeps them, also where no pod exists, and the time line over the layers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from engine.cases import workload_answers
from engine.cases.unmade_answers import build_unmade_facts
from engine.cases.workloads import CaseWorkload, find_workloads, list_without_pods
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects, collect_objects
from ingest.cases.answers import explain_pod
from ingest.cases.read_case import ClusterCase, build_case
from ingest.cases.workload_answers import diagnose_workload, explain_missing_workload
from runtime.kubernetes.object_fields import Fields
from schemas.answers.diagnosis import Diagnosis, InBothLanguages, Obstacle
from schemas.answers.workloads import WorkloadDiagnosis
from schemas.events import AttemptSummarized
from schemas.json_types import Json
from tests.support.builders.workload_objects import (
    NOW,
    a_job,
    a_node,
    a_pod,
    a_template,
    a_workload,
    an_owner,
    to_stamp,
)


def an_event(kind: str, name: str, reason: str, message: str) -> Json:
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.{reason}", "namespace": "ml"},
            "involvedObject": {"kind": kind, "name": name, "namespace": "ml"}, "reason": reason, "message": message,
            "firstTimestamp": to_stamp(2), "lastTimestamp": to_stamp(2), "type": "Warning",
            "source": {"component": "job-controller"}}  # fmt: skip


def read(*objects: Json) -> ClusterCase:
    return build_case(objects, (), NOW)


def ask(case: ClusterCase, word: str, name: str) -> WorkloadDiagnosis:
    (key,) = find_workloads(case.objects, word, name)
    return diagnose_workload(case, key)


def list_codes(answer: WorkloadDiagnosis) -> list[tuple[str, int, str]]:
    return [(group.state, group.count, group.obstacle.code if group.obstacle else "") for group in answer.groups]


def test_the_pods_of_a_job_are_grouped_by_what_keeps_them() -> None:
    owner = an_owner("Job", "train")
    pods = [
        a_pod("train-a", owner, node="n0", phase="Running"),
        a_pod("train-b", owner, cpu="64"),
        a_pod("train-c", owner, cpu="64"),
        a_pod("other", an_owner("Job", "other")),
    ]
    answer = ask(read(a_node("n0"), a_job(parallelism=3), *pods), "job", "train")
    assert (answer.state, answer.wanted, answer.placed, answer.waiting) == ("waiting", 3, 1, 2)
    assert list_codes(answer) == [("not judged", 2, "ResourceNeverEnough"), ("placed", 1, "")]
    assert answer.sentence.en.startswith("2 of 3 pods wait: ")
    assert answer.sentence.zh.startswith("3 个 Pod 中有 2 个在等待：")
    assert answer.groups[0].pods == ["train-b", "train-c"]
    assert answer.groups[1].nodes == ["n0"]


def test_a_quota_that_refuses_pods_is_named_where_none_exists() -> None:
    words = 'pods "train-x" is forbidden: exceeded quota: gpus, requested: cpu=2, used: cpu=4, limited: cpu=4'
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus", "namespace": "ml"},
             "status": {"hard": {"cpu": "4"}, "used": {"cpu": "4"}}}  # fmt: skip
    case = read(a_node("n0"), a_job(), quota, an_event("Job", "train", "FailedCreate", f"Error creating: {words}"))
    answer = ask(case, "job", "train")
    assert list_codes(answer) == [("not made", 1, "QuotaExceeded")]
    assert answer.sentence.en == (
        "1 pod is wanted, none exists: Job/train could not make the pod: the API server refuses it, because a quota "
        "of namespace ml would be exceeded; of cpu, 4 of 4 are used."
    )


def test_a_webhook_that_refuses_pods_of_a_deployment_is_quoted_from_its_replica_set() -> None:
    spec = {"replicas": 2, "template": a_template("1"), "selector": {"matchLabels": {"app": "train"}}}
    deployment = a_workload("apps/v1", "Deployment", "web", spec)
    replica_set = a_workload("apps/v1", "ReplicaSet", "web-1", spec, an_owner("Deployment", "web", "apps/v1"))
    words = 'admission webhook "policy.example" denied the request: no team label'
    case = read(deployment, replica_set, an_event("ReplicaSet", "web-1", "FailedCreate", f"Error creating: {words}"))
    answer = ask(case, "deploy", "web")
    assert list_codes(answer) == [("not made", 2, "PodDeniedByRule")]
    assert "no team label" in answer.sentence.en
    assert "ReplicaSet/web-1" in answer.sentence.en


def test_a_suspended_job_waits_for_its_queue() -> None:
    spec = {"queueName": "team", "podSets": [{"name": "main", "count": 2, "template": a_template("2")}]}
    message = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor spot, 2 more needed"
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message,
                 "lastTransitionTime": to_stamp(1)}  # fmt: skip
    workload = a_workload("kueue.x-k8s.io/v1beta2", "Workload", "job-train-1", spec, an_owner("Job", "train"),
                          status={"conditions": [condition]})  # fmt: skip
    case = read(a_job(parallelism=2, suspend=True), workload)
    for word, name in (("job", "train"), ("workload", "job-train-1"), ("wl", "job-train-1")):
        answer = ask(case, word, name)
        assert list_codes(answer) == [("not made", 2, "KueueWaitsForQuota")]
    assert [(stage.event, stage.after_seconds) for stage in answer.timeline] == [("owner created", None), ("queued", 0)]
    diagnosis = answer.groups[0].diagnosis
    assert diagnosis
    assert [(wait.layer, wait.until, wait.waited_seconds) for wait in diagnosis.waits] == [("queue", None, 600)]


def test_a_suspended_job_without_a_queue_is_named_as_such() -> None:
    assert list_codes(ask(read(a_job(suspend=True)), "job", "train")) == [("not made", 1, "WorkloadSuspended")]


def test_pods_that_nothing_explains_are_reported_as_missing() -> None:
    answer = ask(read(a_node("n0"), a_job(parallelism=4)), "job", "train")
    assert list_codes(answer) == [("not made", 4, "PodsNotMade")]
    assert "Job/train has not made 4 of its pods" in answer.sentence.en


def test_a_group_that_is_not_let_in_has_no_pods() -> None:
    job = a_workload("batch.volcano.sh/v1alpha1", "Job", "train", {
        "queue": "research", "tasks": [{"name": "worker", "replicas": 3, "template": a_template("2")}],
    })  # fmt: skip
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "queue resource quota insufficient: insufficient cpu",
        "lastTransitionTime": to_stamp(1),
    }
    group = a_workload("scheduling.volcano.sh/v1beta1", "PodGroup", "train-7", {"minMember": 3, "queue": "research"},
                       an_owner("Job", "train", "batch.volcano.sh/v1alpha1"),
                       status={"phase": "Pending", "conditions": [condition]})  # fmt: skip
    case = read(job, group)
    for word, name in (("vcjob", "train"), ("job", "train"), ("podgroup", "train-7")):
        assert list_codes(ask(case, word, name)) == [("not made", 3, "GroupNotEnqueued")]


@pytest.mark.parametrize(
    ("spec", "state"),
    [({"completions": 1}, "ended"), ({"parallelism": 0}, "empty")],
)
def test_a_job_that_wants_nothing_waits_for_nothing(spec: Json, state: str) -> None:
    job = a_job(**spec)
    job["status"] = {"succeeded": 1}
    pods = [a_pod("train-a", an_owner("Job", "train"), phase="Succeeded")] if state == "ended" else []
    answer = ask(read(job, *pods), "job", "train")
    assert (answer.state, answer.waiting, answer.groups) == (state, 0, [])


def test_pods_that_their_node_refused_are_a_group() -> None:
    status = {"reason": "UnexpectedAdmissionError", "message": "Allocate failed due to no healthy devices"}
    pods: Sequence[Json] = [a_pod("train-a", an_owner("Job", "train"), node="n0", phase="Failed", **status)]
    answer = ask(read(a_node("n0"), a_job(parallelism=0), *pods), "job", "train")
    assert (answer.state, answer.ended) == ("ended", 1)
    (group,) = answer.groups
    assert (group.state, group.pods, group.nodes) == ("rejected", ["train-a"], ["n0"])


def test_the_time_line_says_how_long_each_step_took() -> None:
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": to_stamp(4)}]
    container = {"name": "main", "state": {"running": {"startedAt": to_stamp(9)}}}
    pod = a_pod("train-a", an_owner("Job", "train"), node="n0", phase="Running", conditions=conditions,
                containerStatuses=[container])  # fmt: skip
    tried = an_event("Pod", "train-a", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.")
    case = read(a_node("n0"), a_job(), pod, tried)
    expected = [("owner created", None), ("created", 60), ("tried", 60), ("bound", 120), ("started", 300)]
    assert [(stage.event, stage.after_seconds) for stage in ask(case, "job", "train").timeline] == expected


def test_an_event_of_several_pods_has_its_first_and_its_last_time() -> None:
    owner = an_owner("Job", "train")
    pods = [
        a_pod(f"train-{minute}", owner, node="n0", phase="Running",
              conditions=[{"type": "PodScheduled", "status": "True", "lastTransitionTime": to_stamp(minute)}])
        for minute in (7, 3, 5)
    ]  # fmt: skip
    bound = ask(read(a_job(parallelism=3), *pods), "job", "train").timeline[-1]
    assert (bound.event, bound.subject, bound.count) == ("bound", "Pod/train-3", 3)
    assert (bound.at[11:16], bound.last_at[11:16]) == ("12:03", "12:07")


def test_the_nodes_of_a_judged_pod_have_their_reasons() -> None:
    pod = a_pod("alone", an_owner("Job", "gone"), cpu="6")
    nodes = explain_pod(read(a_node("n0"), a_node("n1", "8"), pod), "ml/alone").diagnosis.nodes
    assert [(node.name, node.status, [container.reason for container in node.containers]) for node in nodes or ()] == [
        ("n0", "failed", ["Insufficient cpu"]), ("n1", "passed", []),
    ]  # fmt: skip


def test_a_workload_that_is_not_there_has_similar_names() -> None:
    objects = read(a_job("train"), a_job("solve")).objects
    assert not find_workloads(objects, "job", "trian")
    assert "ml/job/train" in explain_missing_workload("case.yaml", objects, "job", "trian")
    assert "has no deployment" in explain_missing_workload("case.yaml", objects, "deployment", "web")
    assert kinds.POD not in objects.tables


def test_workloads_without_pods_are_named_by_the_owner_of_their_owners() -> None:
    deployment = a_workload("apps/v1", "Deployment", "web", {"replicas": 2, "template": a_template("1")})
    owner = an_owner("Deployment", "web", "apps/v1")
    replicas = a_workload("apps/v1", "ReplicaSet", "web-1", {"replicas": 2, "template": a_template("1")}, owner)
    old = a_workload("apps/v1", "ReplicaSet", "web-0", {"replicas": 0, "template": a_template("1")}, owner)
    # Its status counts pods that nobody read.
    unread = a_workload("batch/v1", "Job", "runs", {"template": a_template("1")}, status={"active": 1})
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    complete = a_workload("batch/v1", "Job", "ended", {"template": a_template("1")}, status=ended)
    objects = [a_job(), a_pod("train-0", an_owner("Job", "train")), deployment, replicas, old, unread, complete]
    case = build_case(objects, (), NOW)
    assert [str(key) for key in list_without_pods(case.objects)] == ["Deployment/web"]


def test_an_app_wrapper_that_kueue_holds_waits_for_the_quota_of_its_components() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 2, "template": a_template("2")}}
    version = "workload.codeflare.dev/v1beta2"
    wrapper = a_workload(version, "AppWrapper", "llm", {"suspend": True, "components": [{"template": job}]})
    held = {"type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota",
            "message": "insufficient unused quota for cpu in flavor any, 4 more needed"}  # fmt: skip
    workload = a_workload(
        "kueue.x-k8s.io/v1beta2", "Workload", "appwrapper-llm",
        {"queueName": "night", "podSets": [{"name": "llm-0", "count": 2}]},
        an_owner("AppWrapper", "llm", version), status={"conditions": [held]},
    )  # fmt: skip
    case = read(wrapper, workload)
    assert [str(key) for key in list_without_pods(case.objects)] == ["AppWrapper/llm"]
    answer = ask(case, "appwrapper", "llm")
    assert (answer.wanted, list_codes(answer)) == (2, [("not made", 2, "KueueWaitsForQuota")])


WORDS = InBothLanguages(en="because", zh="因为")


def a_diagnosis(pod: str, code: str, state: str) -> Diagnosis:
    """A diagnosis of a pod of namespace ml: only its obstacle and its state matter."""
    obstacle = Obstacle(
        code=code, sentence=WORDS, likely_cause=WORDS, remedy=WORDS, who_acts=[], numbers={}, nodes=[], evidence=[]
    )
    base = diagnose(DiagnosisFacts("default", "ml", pod, NOW))
    return base.model_copy(update={"state": state, "obstacle": obstacle if code else None, "sentence": WORDS})


@dataclass(frozen=True)
class DiagnosedPods:
    """A case whose pods have these obstacles and states."""

    objects: CaseObjects
    obstacles: Mapping[str, tuple[str, str]]
    """Code and state by the pod's name."""
    diagnosed_names: list[str] = field(default_factory=list)
    now: datetime = NOW

    def diagnose(self, names: Sequence[str]) -> list[Diagnosis]:
        self.diagnosed_names.extend(names)
        return [a_diagnosis(name, *self.obstacles[name]) for name in (full.partition("/")[2] for full in names)]

    def build_unmade_facts(self, key: CaseWorkload, pod: Fields | None) -> DiagnosisFacts:
        return build_unmade_facts(self.objects, self.now, key, pod)

    def collect_attempts(self, names: Iterable[str]) -> Mapping[str, AttemptSummarized]:
        del names
        return {}


def diagnose_pods(
    pods: Sequence[Json], obstacles: Mapping[str, tuple[str, str]] | None = None, wanted: int | None = None
) -> WorkloadDiagnosis:
    """Diagnose a Job with these pods; without a number it wants as many as it has."""
    objects = collect_objects([a_job(parallelism=len(pods) if wanted is None else wanted), *pods])
    return workload_answers.diagnose_workload(
        DiagnosedPods(objects, obstacles or {}), CaseWorkload("Job.batch", "ml", "train")
    )


OWNER = an_owner("Job", "train")
REFUSED = ("NodeCordoned", "refused")


def test_groups_have_the_cause_before_what_waits_for_it_and_the_larger_first() -> None:
    obstacles = {
        "a": ("", "not judged"),
        "b": ("GangIncomplete", "refused"),
        "c": ("NodeCordoned", "refused"),
        "d": ("TaintNotTolerated", "refused"),
        "e": ("TaintNotTolerated", "refused"),
        "f": ("BindPending", "binding"),
        "g": ("BindPending", "binding"),
        "h": ("BindPending", "binding"),
        "i": ("ImageNotPulled", "placed"),
    }
    pods = [a_pod(name, OWNER, node="n0" if name == "i" else "") for name in obstacles]
    running = [a_pod(name, OWNER, node="n1", phase="Running") for name in ("x", "y")]
    answer = diagnose_pods([*pods, *running], obstacles)
    assert list_codes(answer) == [
        ("refused", 2, "TaintNotTolerated"), ("refused", 1, "NodeCordoned"), ("refused", 1, "GangIncomplete"),
        ("binding", 3, "BindPending"), ("not judged", 1, ""), ("placed", 1, "ImageNotPulled"), ("placed", 2, ""),
    ]  # fmt: skip
    assert answer.sentence.en == "8 of 11 pods wait, 2 of them for this: because"


@pytest.mark.parametrize(
    ("event", "codes"),
    [
        # Words that refused a pod are the cause of the wait of the others; that pods are missing explains nothing.
        ("FailedCreate", [("not made", 1, "OwnerRefused"), ("refused", 2, "NodeCordoned")]),
        ("", [("refused", 2, "NodeCordoned"), ("not made", 1, "PodsNotMade")]),
    ],
)
def test_pods_that_could_not_be_made_come_first(event: str, codes: list[tuple[str, int, str]]) -> None:
    pods = [a_pod("a", OWNER), a_pod("b", OWNER)]
    objects = [a_job(parallelism=3), *pods, *([an_event("Job", "train", event, "no")] if event else [])]
    case = DiagnosedPods(collect_objects(objects), {"a": REFUSED, "b": REFUSED})
    answer = workload_answers.diagnose_workload(case, CaseWorkload("Job.batch", "ml", "train"))
    assert list_codes(answer) == codes
    assert (answer.waiting, answer.wanted, answer.placed) == (3, 3, 0)
    assert answer.sentence.en.startswith(f"3 of 3 pods wait, {codes[0][1]} of them for this: ")


def test_pods_beyond_the_limit_join_those_with_the_same_words_of_the_scheduler() -> None:
    def with_words(pod: Json, words: str) -> Json:
        other = {"type": "Ready", "status": "False", "message": "not ready"}
        pod["status"]["conditions"] = [other, {"type": "PodScheduled", "status": "False", "message": words}]
        return pod

    names = [f"train-{index:03}" for index in range(104)]
    words = {name: "cordoned" if int(name[-3:]) % 2 else "tainted" for name in names} | {names[103]: "new words"}
    codes = {"cordoned": REFUSED, "tainted": ("TaintNotTolerated", "refused"), "new words": REFUSED}
    case = DiagnosedPods(
        collect_objects([a_job(parallelism=104), *(with_words(a_pod(name, OWNER), words[name]) for name in names)]),
        {name: codes[words[name]] for name in names},
    )
    answer = workload_answers.diagnose_workload(case, CaseWorkload("Job.batch", "ml", "train"))
    assert len(case.diagnosed_names) == workload_answers.MAX_DIAGNOSED
    # Words that no diagnosed pod has are no cause.
    assert list_codes(answer) == [
        ("refused", 52, "TaintNotTolerated"), ("refused", 51, "NodeCordoned"), ("not judged", 1, ""),
    ]  # fmt: skip
    assert [len(group.pods) for group in answer.groups] == [20, 20, 1]
    assert answer.groups[2].pods == ["train-103"]


def test_pods_on_nodes_are_grouped_by_what_keeps_them_from_their_start() -> None:
    pods = [
        a_pod("a", OWNER, node="n1"),
        a_pod("b", OWNER, node="n2"),
        a_pod("c", OWNER, node="n2"),
        a_pod("d", OWNER, node="n3"),
        a_pod("e", OWNER, node="n3", phase="Running"),
        a_pod("f", OWNER, node="n4", phase="Failed", reason="UnexpectedAdmissionError"),
        a_pod("g", OWNER, phase="Succeeded"),
    ]
    pulled, refused = ("ImageNotPulled", "placed"), ("KubeletRefusedPod", "rejected")
    obstacles = {"a": pulled, "b": pulled, "c": pulled, "d": ("", "placed"), "f": refused}
    answer = diagnose_pods(pods, obstacles, 5)
    groups = [(group.state, group.pods, group.nodes) for group in answer.groups]
    assert groups == [
        ("placed", ["a", "b", "c"], ["n1", "n2"]), ("rejected", ["f"], ["n4"]), ("placed", ["d", "e"], ["n3"]),
    ]  # fmt: skip
    assert (answer.state, answer.placed, answer.waiting, answer.ended) == ("placed", 5, 0, 2)
    assert answer.sentence.en == "5 pods are placed: n1, n2, n3."


def test_twenty_names_of_a_group_are_listed() -> None:
    names = [f"train-{index:02}" for index in range(25)]
    answer = diagnose_pods([a_pod(name, OWNER, node=f"node-{name}", phase="Running") for name in names])
    [group] = answer.groups
    assert (group.count, group.pods, len(group.nodes)) == (25, names[:20], 20)
    [troubled] = diagnose_pods(
        [a_pod(name, OWNER, node=f"node-{name}") for name in names], dict.fromkeys(names, ("ImageNotPulled", "placed"))
    ).groups
    assert (troubled.count, len(troubled.pods), len(troubled.nodes)) == (25, 20, 20)


@pytest.mark.parametrize(
    ("pods", "wanted", "state", "sentence"),
    [
        ([], 0, "empty", "It wants no pods now."),
        ([a_pod("a", OWNER, phase="Succeeded"), a_pod("b", OWNER, phase="Failed")], 0, "ended",
         "Nothing of it waits or runs; 2 pods have ended."),
        ([a_pod("a", OWNER, node="n0", phase="Running")], 1, "placed", "1 pod is placed: n0."),
        ([a_pod("a", OWNER)], 1, "waiting", "1 of 1 pod waits: because"),
        # More pods than are wanted do not take the place of missing ones.
        ([a_pod("a", OWNER, node="n0", phase="Running")], 0, "placed", "1 pod is placed: n0."),
    ],
)  # fmt: skip
def test_a_workload_in_one_sentence(pods: list[Json], wanted: int, state: str, sentence: str) -> None:
    answer = diagnose_pods(pods, {"a": REFUSED}, wanted)
    assert (answer.state, answer.sentence.en) == (state, sentence)


def test_ended_and_refused_pods_are_counted_together() -> None:
    refused = a_pod("b", OWNER, node="n1", phase="Failed", reason="Evicted")
    answer = diagnose_pods([a_pod("a", OWNER, phase="Succeeded"), refused], {"b": ("", "rejected")}, 0)
    assert (answer.ended, answer.sentence.en) == (2, "Nothing of it waits or runs; 2 pods have ended.")


KAI = "scheduling.run.ai/v2alpha2"


def test_a_group_of_kai_has_no_pods_to_make_besides_those_that_exist() -> None:
    """KAI makes a PodGroup for pods that exist, with ``minMember`` of them."""
    group = a_workload(KAI, "PodGroup", "pg-train", {"minMember": 3})
    member = a_pod("a", OWNER)
    member["metadata"]["annotations"] = {"pod-group-name": "pg-train"}
    key = CaseWorkload("PodGroup.scheduling.run.ai", "ml", "pg-train")
    answer = workload_answers.diagnose_workload(DiagnosedPods(collect_objects([group, member]), {"a": REFUSED}), key)
    assert (answer.waiting, list_codes(answer)) == (1, [("refused", 1, "NodeCordoned")])
    alone = workload_answers.diagnose_workload(DiagnosedPods(collect_objects([group]), {}), key)
    assert (alone.waiting, [group.count for group in alone.groups]) == (1, [1])


@pytest.mark.parametrize(("state", "waiting"), [("RUNNING", 1), ("SUCCEEDED", 0)])
def test_a_workload_whose_kind_names_no_number_waits_until_it_is_over(state: str, waiting: int) -> None:
    job = a_workload("ray.io/v1", "RayJob", "train", {}, status={"jobDeploymentStatus": state})
    answer = ask(read(job), "rayjob", "train")
    assert (answer.wanted, answer.waiting) == (None, waiting)
    if waiting:
        assert answer.sentence.en.startswith("No pod was read: ")


def test_an_ended_workflow_has_its_own_words() -> None:
    """Argo's Workflow writes its error into ``status.message``."""
    status = {"phase": "Error", "message": "step build failed"}
    answer = ask(read(a_workload("argoproj.io/v1alpha1", "Workflow", "train", {}, status=status)), "workflow", "train")
    assert (answer.state, answer.waiting, list_codes(answer)) == ("empty", 0, [("not made", 0, "WorkloadSays")])
    assert answer.sentence.en.startswith("It makes no pods now: ")
    assert "step build failed" in answer.sentence.en


def test_a_job_that_has_failed_says_so_beside_its_pods() -> None:
    job = a_job()
    job["status"] = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    answer = ask(read(job, a_pod("train-a", OWNER, phase="Failed")), "job", "train")
    assert (answer.state, list_codes(answer)) == ("ended", [("not made", 0, "JobFailed")])
    assert answer.sentence.en.startswith("It makes no pods now: ")


def test_a_running_pod_of_a_failed_job_is_what_counts() -> None:
    job = a_job()
    job["status"] = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    answer = ask(read(job, a_node("n0"), a_pod("train-a", OWNER, node="n0", phase="Running")), "job", "train")
    assert (answer.state, list_codes(answer)) == ("placed", [("placed", 1, "")])


def test_a_group_of_which_no_pod_was_read_is_not_one_without_pods() -> None:
    condition = {"type": "Unschedulable", "status": "True", "message": "1/2 tasks in gang unschedulable"}
    group = a_workload("scheduling.volcano.sh/v1beta1", "PodGroup", "g", {"minMember": 2},
                       status={"phase": "Pending", "conditions": [condition]})  # fmt: skip
    answer = ask(read(group), "podgroup", "g")
    assert list_codes(answer) == [("not made", 2, "GroupNotPlaced")]
    assert answer.sentence.en.startswith("2 pods are wanted, none was read: ")
