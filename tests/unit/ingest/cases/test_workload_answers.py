"""Workloads of a case: their pods by what keeps them, also where no pod exists, and the time line over the layers."""

from collections.abc import Sequence

import pytest

from engine.cases.workloads import find_workloads, list_without_pods
from engine.snapshot import kinds
from ingest.cases.answers import explain_pod
from ingest.cases.read_case import ClusterCase, build_case
from ingest.cases.workload_answers import diagnose_workload, explain_missing_workload
from schemas.answers.workloads import WorkloadDiagnosis
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
