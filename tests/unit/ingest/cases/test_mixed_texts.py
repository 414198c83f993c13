"""Texts that hold a manifest next to events about it, words that name their pod, and copies that end too early."""

from textwrap import dedent

import pytest

from engine.cases.unmade_causes import list_unmade
from ingest.cases.answers import diagnose_pods
from ingest.cases.read_case import list_pod_names, read_case_text
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.diagnosis import Diagnosis

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: fit-0{namespace}
spec:
  containers:
  - name: main
    image: x
"""
ASSIGNED = "  Normal   Scheduled  9s  {scheduler}  Successfully assigned {namespace}/fit-0 to n-7\n"
PLUGIN = (
    "Allocate failed due to rpc error: code = Unavailable desc = error reading from server: EOF, which is unexpected"
)
FULL = "Node didn't have enough resource: cpu, requested: 4000, used: 9000, capacity: 12000"
REFUSED = [("UnexpectedAdmissionError", PLUGIN, "KubeletPluginFailed"), ("OutOfcpu", FULL, "KubeletOutOfResource")]
PLACES = [("default", "", "volcano"), ("nlp", "\n  namespace: nlp", "hami-scheduler"), ("nlp", "", "default-scheduler")]
OVERHEAD = """\
incompatible with nodepool "a4", daemonset overhead={"cpu":"1","amd.com/gpu":"4","pods":"7"},
no instance type satisfied resources
{"cpu":"2","amd.com/gpu":"8","pods":"8"} and
requirements karpenter.sh/nodepool In [a4],
kubernetes.io/os In [linux] (no instance type has enough resources)
"""


def diagnose_text(text: str) -> tuple[str, Diagnosis]:
    case = read_case_text(dedent(text))
    (name,) = list_pod_names(case)
    (answer,) = diagnose_pods(case, [name])
    return name, answer.diagnosis


def find_code(diagnosis: Diagnosis) -> str:
    return diagnosis.obstacle.code if diagnosis.obstacle else ""


@pytest.mark.parametrize(("reason", "words", "code"), REFUSED)
@pytest.mark.parametrize(("namespace", "stated", "scheduler"), PLACES)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_manifest_next_to_the_events_of_its_pod_is_the_pod_that_its_node_refused(
    reason: str, words: str, code: str, namespace: str, stated: str, scheduler: str, is_first: bool
) -> None:
    manifest = f"```yaml\n{POD.format(namespace=stated)}```\n"
    events = (
        f"  Warning  FailedScheduling  9s  {scheduler}  AssumePod failed: pod 4355 is in the cache\n"
        + ASSIGNED.format(scheduler=scheduler, namespace=namespace)
        + f"  Warning  {reason}  8s  kubelet  {words}\n"
    )
    parts = [manifest, "What is wrong with it?\n", f"```\n{events}```\n"]
    name, diagnosis = diagnose_text("".join(parts if is_first else reversed(parts)))
    assert (name, diagnosis.state, find_code(diagnosis)) == (f"{namespace}/fit-0", "rejected", code)
    assert "node n-7" in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert "it has no owner" in diagnosis.obstacle.remedy.en


def test_events_behind_a_manifest_without_fences_are_read() -> None:
    text = f"{POD.format(namespace='')}\nThe events are\n  Warning  OutOfcpu  8s  kubelet, n-7  {FULL}\n"
    name, diagnosis = diagnose_text(text)
    assert (name, find_code(diagnosis)) == ("default/fit-0", "KubeletOutOfResource")


@pytest.mark.parametrize(
    "text",
    [
        "fit-0   0/1     UnexpectedAdmissionError   0    3m",
        f"Warning  UnexpectedAdmissionError  8s  kubelet  {PLUGIN}",
    ],
)
def test_the_owner_of_a_pod_of_which_only_a_row_was_read_is_open(text: str) -> None:
    _, diagnosis = diagnose_text(text)
    assert diagnosis.obstacle
    assert "its owner, if it has one, makes a new one" in diagnosis.obstacle.remedy.en


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("ns1   fit-6f-x2   0/3     Topology Affinity Error   0    ", "KubeletTopology"),
        ("ns1   fit-6f-x2   0/1     OutOfamd.com/gpu   0", "KubeletWordsMissing"),
    ],
)
def test_a_row_of_a_pod_that_ends_before_its_age_is_read(row: str, code: str) -> None:
    name, diagnosis = diagnose_text(f"Such pods fail to deploy.\n{row}\n")
    assert (name, find_code(diagnosis)) == ("ns1/fit-6f-x2", code)


@pytest.mark.parametrize(
    "before", ["", "describe shows: ", "Warning  FailedScheduling  9s  default-scheduler  0/2 nodes are available: "]
)
def test_a_claim_that_its_controller_has_not_made_is_named(before: str) -> None:
    words = (
        'waiting for dynamic resource controller to create the resourceclaim "fit-0-npu". no new claims to deallocate'
    )
    _, diagnosis = diagnose_text(
        f"{before}{words}, preemption: 0/2 nodes are available: 2 No preemption victims found."
    )
    assert find_code(diagnosis) == "ClaimAwaited"
    assert "fit-0-npu" in diagnosis.sentence.en


@pytest.mark.parametrize("words", ["the server could not find the requested resource", "context deadline exceeded"])
def test_the_pod_of_a_claim_in_a_kubelets_words_is_the_pod(words: str) -> None:
    text = (
        f"Failed to prepare dynamic resources: failed to fetch ResourceClaim fit-0-npu referenced by pod fit-0: {words}"
    )
    name, diagnosis = diagnose_text(f"I'm getting `{text}` in a new cluster.")
    assert (name, find_code(diagnosis)) == ("default/fit-0", "ClaimNotPrepared")


@pytest.mark.parametrize("text", [OVERHEAD, OVERHEAD.replace("\n", " "), f"We see\n\n```{OVERHEAD}```\nin the log"])
def test_karpenters_words_are_read_over_several_lines_with_the_devices_of_daemon_sets(text: str) -> None:
    _, diagnosis = diagnose_text(text)
    assert "no instance type of NodePool a4 has enough resources" in diagnosis.sentence.en
    assert "counts 4 amd.com/gpu for the DaemonSets" in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        ("nvidia.com/gpu.product", "ResourceIsLabel"),
        ("nvidia.com/gpu.count", "ResourceIsLabel"),
        ("nvidia.com/gpu", "ResourceShortOrMissing"),
        ("nvidia.com/gpu.shared", "ResourceShortOrMissing"),
        ("nvidia.com/mig-1g.5gb", "ResourceShortOrMissing"),
    ],
)
def test_a_label_that_a_pod_requests_as_a_resource_is_called_one(resource: str, code: str) -> None:
    _, diagnosis = diagnose_text(
        f"Warning  FailedScheduling  9s  x-scheduler  0/4 nodes are available: 4 Insufficient {resource}."
    )
    assert find_code(diagnosis) == code
    assert f"4 of 4 nodes offer no resource {resource}" in diagnosis.sentence.en or code != "ResourceIsLabel"


def list_unmade_codes(text: str) -> dict[str, str]:
    case = read_case_text(text)
    answers = {str(key): diagnose_workload(case, key) for key in list_unmade(case.objects)}
    return {key: answer.groups[0].obstacle.code for key, answer in answers.items() if answer.groups[0].obstacle}


@pytest.mark.parametrize(("maker", "kind"), [("job", "Job"), ("pytorchjob", "PyTorchJob")])
def test_what_a_controller_reports_without_a_warning_is_no_reason_to_ask_about_it(maker: str, kind: str) -> None:
    words = (
        "couldn't assign flavors to pod set main: insufficient unused quota for amd.com/gpu in flavor a4, 3 more needed"
    )
    rows = (
        f"9m  Normal   CreatedWorkload   {maker}/fit            Created Workload: default/{maker}-fit-1a\n"
        f"9s  Warning  SecondPassFailed  workload/{maker}-fit-1a   {words}\n"
    )
    assert list_unmade_codes(rows) == {f"Workload/{maker}-fit-1a": "KueueWaitsForQuota"}
    failed = f'9s  Warning  FailedCreate  {maker}/fit  Error creating: pods "fit-" is forbidden: exceeded quota: q'
    assert [key for key in list_unmade_codes(failed) if kind in key]


@pytest.mark.parametrize("command", ["kubectl describe pg fit -n ns1", "kubectl get podgroup fit -n ns1 -o wide"])
def test_a_command_names_the_group_of_the_row_below_it(command: str) -> None:
    words = "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable."
    text = f"$ {command}\n...\nEvents:\n  Warning  Unschedulable  69s (x7 over 26h)  volcano  {words}\n"
    assert list_unmade_codes(text) == {"PodGroup/fit": "GroupNotPlaced"}


@pytest.mark.parametrize("state", ["CrashLoopBackOff", "Init:CrashLoopBackOff"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"Message:  Pod was rejected: {PLUGIN}", "KubeletPluginFailed"),
        (f"  Warning  OutOfcpu  8s  kubelet, n-7  {FULL}", "KubeletOutOfResource"),
    ],
)
def test_a_refusal_is_not_of_the_pod_of_a_table_that_has_started(words: str, code: str, state: str) -> None:
    table = f"NAME   READY   STATUS   RESTARTS   AGE\ndcgm-kwf5h   0/2   {state}   57 (12s ago)   9h\n"
    case = read_case_text(f"```\n{words}\n```\nThe operator fails too:\n```\n$ kubectl get pods -n ops\n{table}```\n")
    diagnoses = [answer.diagnosis for answer in diagnose_pods(case, list_pod_names(case))]
    assert {f"{diagnosis.namespace}/{diagnosis.name}": find_code(diagnosis) for diagnosis in diagnoses} == {
        "ops/dcgm-kwf5h": "ContainerEnds",
        "default/pod": code,
    }


def test_a_description_without_its_fields_is_the_pod_that_its_events_place() -> None:
    events = ASSIGNED.format(scheduler="volcano", namespace="nlp")
    name, diagnosis = diagnose_text(f"```\nName:  fit-0\nNamespace:  nlp\n...\nEvents:\n{events}```\n")
    assert (name, diagnosis.state) == ("nlp/fit-0", "placed")
    assert "n-7" in diagnosis.sentence.en
