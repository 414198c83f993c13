"""Answers that hang on one word of Kueue, a kubelet or a scheduler, from texts with nothing else in them."""

import pytest

from engine.cases.unmade_causes import list_unmade
from engine.cases.workloads import find_workloads
from ingest.cases.answers import diagnose_pods
from ingest.cases.read_case import list_pod_names, read_case_text
from ingest.cases.workload_answers import diagnose_workload
from ingest.readers.kube.failure_messages import parse_failure
from schemas.answers.diagnosis import Diagnosis

WORKLOAD = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: job-embed, namespace: nlp, creationTimestamp: "2026-03-04T10:00:00Z"}
spec: {active: true, queueName: lab, podSets: [{name: main, count: 2, template: {spec: {containers: [{name: c}]}}}]}
status:
  admissionChecks: [{name: budget, state: STATE, message: "no money left"}]
  conditions:
  - {type: QuotaReserved, status: "False", reason: R, message: "", lastTransitionTime: "2026-03-04T10:01:00Z"}
  - {type: Admitted, status: "True", reason: A, message: "", lastTransitionTime: "2026-03-04T10:02:00Z"}
  - {type: Evicted, status: "True", reason: AdmissionCheck, message: m, lastTransitionTime: "2026-03-04T10:03:00Z"}
"""


def diagnose_text(text: str) -> Diagnosis:
    case = read_case_text(text)
    (answer,) = diagnose_pods(case, list_pod_names(case))
    return answer.diagnosis


@pytest.mark.parametrize(("state", "code"), [("Rejected", "KueueCheckRejected"), ("Retry", "KueueEvicted")])
def test_a_workload_that_was_taken_back_is_not_admitted(state: str, code: str) -> None:
    case = read_case_text(WORKLOAD.replace("STATE", state))
    (key,) = find_workloads(case.objects, "workload", "job-embed")
    (group,) = diagnose_workload(case, key).groups
    assert group.obstacle is not None
    assert group.obstacle.code == code
    assert "budget" in group.obstacle.sentence.en


RESERVED = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: jobset-fold, namespace: bio, creationTimestamp: "2026-03-04T10:00:00Z"}
spec: {active: true, queueName: lab, podSets: [{name: main, count: 2, template: {spec: {containers: [{name: c}]}}}]}
status:
  admissionChecks: [{name: zone-stock, state: STATE, message: "WORDS"}]
  conditions:
  - {type: QuotaReserved, status: "True", reason: QuotaReserved, message: "Quota reserved in ClusterQueue bio-cq"}
"""


@pytest.mark.parametrize(
    ("state", "words", "code"),
    [
        ("Retry", "no machine of this kind in zone b", "KueueCheckFails"),
        ("Pending", "creating the request failed: quota of the project", "KueueCheckFails"),
        ("Pending", "", "KueueChecks"),
    ],
)
def test_a_workload_with_quota_is_about_its_admission_check(state: str, words: str, code: str) -> None:
    case = read_case_text(RESERVED.replace("STATE", state).replace("WORDS", words))
    (key,) = list_unmade(case.objects)
    assert key.name == "jobset-fold"
    answer = diagnose_workload(case, key)
    (group,) = answer.groups
    assert group.obstacle is not None
    assert group.obstacle.code == code
    assert "zone-stock" in group.obstacle.sentence.en
    assert words in group.obstacle.sentence.en
    # No pod exists that could be held.
    assert "workload jobset-fold" in group.obstacle.sentence.en
    assert "the pod" not in answer.sentence.en
    assert not list_unmade(read_case_text(RESERVED.replace("STATE", "Ready")).objects)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("TopologyAffinityError  3s  kubelet  Resources cannot be allocated with Topology locality", "KubeletTopology"),
        (
            'FailedCreatePodSandBox  3s  kubelet  Failed to create pod sandbox: no runtime for "amd" is configured',
            "RuntimeNotConfigured",
        ),
        (
            "FailedPrepareDynamicResources  3s  kubelet  Failed to prepare dynamic resources: driver gone",
            "ClaimNotPrepared",
        ),
        ("FailedMount  3s  kubelet  Unable to attach or mount volumes", "VolumeNotMounted"),
        ("Failed  3s  kubelet  Error: ImagePullBackOff", "ImageNotPulled"),
    ],
)
def test_a_kubelets_words_name_what_its_node_lacks(words: str, code: str) -> None:
    obstacle = diagnose_text(f"  Warning  {words}\n").obstacle
    assert obstacle is not None
    assert obstacle.code == code


def test_nodes_that_never_offer_a_resource_come_after_a_constraint_on_those_that_do() -> None:
    nodes = "".join(
        f"- apiVersion: v1\n  kind: Node\n  metadata: {{name: {name}, labels: {{zone: {zone}}}}}\n"
        f'  status: {{allocatable: {{cpu: "8", memory: 8Gi, pods: "10"{gpus}}}}}\n'
        for name, zone, gpus in (("g1", "x", ', amd.com/gpu: "2"'), ("p1", "y", ""))
    )
    spread = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}"
    pods = "".join(
        f"- apiVersion: v1\n  kind: Pod\n  metadata: {{name: {name}, namespace: nlp, labels: {{app: a}}}}\n"
        f"  spec: {{{node}containers: [{{name: c, resources: {{requests: {{cpu: 1, amd.com/gpu: 1}}}}}}],"
        f" topologySpreadConstraints: [{spread}]}}\n  status: {{phase: {phase}}}\n"
        for name, node, phase in (("a-0", "nodeName: g1, ", "Running"), ("a-1", "", "Pending"))
    )
    case = read_case_text(f"apiVersion: v1\nkind: List\nitems:\n{nodes}{pods}")
    (answer,) = diagnose_pods(case, ["nlp/a-1"])
    codes = [answer.diagnosis.obstacle, *answer.diagnosis.other_obstacles]
    assert [obstacle.code for obstacle in codes if obstacle] == ["TopologySpread", "NodeWithoutResource"]


def test_reservations_are_not_counted_as_nodes() -> None:
    text = "0/4 nodes are available: 4 Insufficient amd.com/gpu, 2 Reservation(s) Insufficient amd.com/gpu."
    assert parse_failure(text).counts == {"Insufficient amd.com/gpu": 4}


def test_predicates_behind_two_colons_are_counted() -> None:
    text = "No nodes are available that match all of the following predicates:: Insufficient cpu (3), PodFitsPorts (5)."
    assert parse_failure(text).counts == {"Insufficient cpu": 3, "PodFitsPorts": 5}
