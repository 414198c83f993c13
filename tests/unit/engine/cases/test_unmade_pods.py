"""Pods built from the templates of workloads, with the marks that their controllers would add."""

import pytest

from engine.cases.unmade_pods import build_unmade_pod, find_template
from engine.cases.workloads import CaseWorkload, list_family
from engine.snapshot.case_objects import collect_objects
from engine.snapshot.kinds import identify
from runtime.kubernetes.object_fields import Fields
from schemas.json_types import Json
from tests.support.builders.workload_objects import a_job, a_template, a_workload, an_owner

KUEUE, VOLCANO = "kueue.x-k8s.io/v1beta2", "scheduling.volcano.sh/v1beta1"
VOLCANO_JOB = "batch.volcano.sh/v1alpha1"
GATE = [{"name": "kueue.x-k8s.io/admission"}]


def build(*objects: Json) -> Fields | None:
    """Build a pod of the first object."""
    case, first = collect_objects(objects), objects[0]
    key = CaseWorkload(identify(first["apiVersion"], first["kind"]), "ml", first["metadata"]["name"])
    return build_unmade_pod(case, key, list_family(case, key))


def a_template_of(**spec: object) -> Json:
    template = a_template("1")
    return template | {"spec": template["spec"] | spec}


def a_kueue_workload(name: str, *owners: Json, **spec: object) -> Json:
    return a_workload(KUEUE, "Workload", name, spec, *owners)


def test_a_pod_has_the_template_of_its_workload_and_the_defaults_of_the_api_server() -> None:
    pod = build(a_job())
    assert pod
    assert (pod["kind"], pod["status"]) == ("Pod", {"phase": "Pending"})
    assert pod["metadata"] == {
        "name": "train", "namespace": "ml", "labels": {"app": "train"}, "annotations": {},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}],
    }  # fmt: skip
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert "schedulingGates" not in pod["spec"]
    assert pod["spec"]["containers"][0]["name"] == "main"


@pytest.mark.parametrize(
    ("version", "kind", "owner"), [("v1", "ReplicationController", "v1"), ("apps/v1", "ReplicaSet", "apps/v1")]
)
def test_the_owner_has_the_version_of_its_group(version: str, kind: str, owner: str) -> None:
    pod = build(a_workload(version, kind, "web", {"replicas": 1, "template": a_template("1")}))
    assert pod
    assert pod["metadata"]["ownerReferences"][0]["apiVersion"] == owner


def test_a_workload_without_a_template_makes_no_pod_unless_kueue_speaks_of_it() -> None:
    assert build(a_workload("batch/v1", "Job", "train", {})) is None
    pod = build(a_kueue_workload("train"))
    assert pod
    assert pod["metadata"]["annotations"] == {"kueue.x-k8s.io/workload": "train"}
    assert (pod["metadata"]["ownerReferences"][0]["kind"], pod["spec"]["schedulingGates"]) == ("Workload", GATE)


def test_a_group_without_a_template_makes_no_pod() -> None:
    assert build(a_workload(VOLCANO, "PodGroup", "g", {"minMember": 3})) is None


def test_the_template_of_a_workload_that_was_read_alone_is_its_pod_sets() -> None:
    pod = build(a_kueue_workload("train", podSets=[{"name": "main", "template": a_template("1")}]))
    assert pod
    assert pod["spec"]["containers"][0]["name"] == "main"
    assert (pod["spec"]["schedulingGates"], pod["metadata"]["annotations"]) == (
        GATE, {"kueue.x-k8s.io/workload": "train"},
    )  # fmt: skip


@pytest.mark.parametrize(("is_suspended", "has_workload"), [(True, True), (True, False), (False, True)])
def test_a_pod_has_kueues_gate_while_its_job_is_suspended(is_suspended: bool, has_workload: bool) -> None:
    """The job is the maker, and the Workload holds it back."""
    workloads = [a_kueue_workload("job-train", an_owner("Job", "train"))] if has_workload else []
    pod = build(a_job(suspend=is_suspended), *workloads)
    assert pod
    assert ("schedulingGates" in pod["spec"]) == (is_suspended and has_workload)
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"
    assert pod["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    ("named", "template", "expected"),
    [
        ({}, {}, "volcano"),
        ({"schedulerName": "mine"}, {}, "mine"),
        ({"schedulerName": "mine"}, {"schedulerName": "hami-scheduler"}, "hami-scheduler"),
    ],
)
def test_volcanos_job_names_the_scheduler_of_its_tasks(named: Json, template: Json, expected: str) -> None:
    tasks = [{"replicas": 2, "template": a_template_of(**template)}]
    pod = build(a_workload(VOLCANO_JOB, "Job", "train", {"tasks": tasks, **named}))
    assert pod
    assert pod["spec"]["schedulerName"] == expected


@pytest.mark.parametrize(("queue", "expected"), [({}, "default"), ({"queue": "research"}, "research")])
def test_a_task_of_volcano_has_the_names_of_its_group_and_its_queue(queue: Json, expected: str) -> None:
    """The annotations are those by which Volcano's scheduler finds both."""
    template = a_template("1")
    template["metadata"]["annotations"] = {"team": "a"}
    job = a_workload(VOLCANO_JOB, "Job", "train", {"tasks": [{"replicas": 2, "template": template}], **queue})
    group = a_workload(VOLCANO, "PodGroup", "train-7", {"minMember": 2}, an_owner("Job", "train", VOLCANO_JOB))
    annotations = {"team": "a", "scheduling.volcano.sh/queue-name": expected}
    pod, alone = build(job, group), build(job)
    assert pod
    assert alone
    assert pod["metadata"]["annotations"] == annotations | {"scheduling.k8s.io/group-name": "train-7"}
    assert alone["metadata"]["annotations"] == annotations


def test_the_template_of_an_owned_object_comes_before_that_of_its_owner() -> None:
    deployment = a_workload("apps/v1", "Deployment", "web", {"replicas": 1, "template": a_template("1")})
    owner = an_owner("Deployment", "web", "apps/v1")
    replicas = a_workload("apps/v1", "ReplicaSet", "web-1", {"replicas": 1, "template": a_template("1")}, owner)
    pod = build(replicas, deployment)
    assert pod
    assert pod["metadata"]["name"] == "web-1"


def wrap_template(template: Json, depth: int) -> Json:
    fields: Json = {"template": template}
    for _ in range(depth):
        fields = {"spec": fields}
    return fields


TEMPLATE = a_template("1")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"template": TEMPLATE}, TEMPLATE),
        ({"a": {"b": [{"c": 1}, {"template": TEMPLATE}]}}, TEMPLATE),
        ({"template": {"spec": {"template": TEMPLATE}}}, TEMPLATE),
        # A template without containers is not one of pods.
        ({"template": {"spec": {"containers": []}}}, None),
        ({}, None),
        (None, None),
        ("text", None),
        (wrap_template(TEMPLATE, 8), TEMPLATE),
        (wrap_template(TEMPLATE, 9), None),
    ],
)
def test_the_first_template_of_pods_is_found_at_eight_levels(fields: object, expected: Json | None) -> None:
    assert find_template(fields) == expected
