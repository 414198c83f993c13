"""States of pods whose cause a table or a log leaves out, and refusals of whole cores."""

from textwrap import dedent

import pytest

from ingest.cases.answers import diagnose_pods
from ingest.cases.read_case import list_pod_names, read_case_text
from schemas.answers.diagnosis import Diagnosis

JOURNAL = (
    'Dec 04 12:42:25 n-7.lab kubenswrapper[7]: I1204 12:42:25.173086 7 kubelet.go:2320] "Pod admission denied" '
    'podUID="4355" pod="default/pod" reason="SMTAlignmentError"'
)
DESCRIBED = (
    "Name: pod\nNamespace: default\nNode: n-7.lab/10.0.0.7\nStatus: Failed\nReason: SMTAlignmentError\n"
    "Message: Pod was rejected:"
)


def diagnose_text(text: str) -> tuple[str, Diagnosis]:
    case = read_case_text(dedent(text))
    (name,) = list_pod_names(case)
    (answer,) = diagnose_pods(case, [name])
    return name, answer.diagnosis


def get_code(diagnosis: Diagnosis) -> str:
    return diagnosis.obstacle.code if diagnosis.obstacle else ""


def a_row(status: str, restarts: str = "0") -> str:
    return f"fit-77c89d8844-jwv4n   0/1     {status}   {restarts}          14m   <none>   n-7   <none>   <none>\n"


@pytest.mark.parametrize("status", ["UnexpectedAdmissionError", "OutOfcpu", "OutOfnvidia.com/gpu"])
def test_a_refusal_of_which_a_table_has_the_reason_only_sends_to_its_words(status: str) -> None:
    name, diagnosis = diagnose_text(a_row(status))
    assert (name, diagnosis.state, get_code(diagnosis)) == (
        "default/fit-77c89d8844-jwv4n", "rejected", "KubeletWordsMissing",
    )  # fmt: skip
    assert f"The kubelet of node n-7 refused the pod: {status};" in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert "kubectl describe pod -n default fit-77c89d8844-jwv4n" in diagnosis.obstacle.remedy.en


@pytest.mark.parametrize("status", ["Topology Affinity Error", "TopologyAffinityError"])
def test_a_reason_that_names_its_cause_needs_no_words(status: str) -> None:
    assert get_code(diagnose_text(a_row(status))[1]) == "KubeletTopology"


@pytest.mark.parametrize(
    ("status", "restarts", "words"),
    [
        ("RunContainerError", "0", "RunContainerError"),
        ("Init:RunContainerError", "7 (2m ago)", "RunContainerError: started again 7 times"),
        ("CreateContainerError", "0", "CreateContainerError"),
    ],
)
def test_a_start_that_failed_without_words_sends_to_the_words(status: str, restarts: str, words: str) -> None:
    _, diagnosis = diagnose_text(a_row(status, restarts))
    assert (diagnosis.state, get_code(diagnosis)) == ("placed", "ContainerNotStarted")
    assert f"can't start a container of it: {words};" in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("status", "restarts", "words"),
    [
        ("Error", "0", "Error"),
        ("OOMKilled", "0", "OOMKilled"),
        ("Error", "4 (1m ago)", "Error: started again 4 times"),
        ("CrashLoopBackOff", "4 (1m ago)", "CrashLoopBackOff: started again 4 times"),
    ],
)
def test_a_container_that_ended_has_the_state_of_the_table(status: str, restarts: str, words: str) -> None:
    _, diagnosis = diagnose_text(a_row(status, restarts))
    assert get_code(diagnosis) == "ContainerEnds"
    assert diagnosis.sentence.en == f"The pod is on node n-7, and a container of it ended: {words}."


# The two sentences of Kubernetes' static policy with full-pcpus-only (cpumanager/policy_static.go).
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("requested 3 cpus not multiple cpus per core = 2", "KubeletCpusUnaligned"),
        (
            "not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2",
            "KubeletLacksCores",
        ),
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        f'{JOURNAL} message="{{}}"',
        "  Warning  SMTAlignmentError  9s  kubelet, n-7.lab  {}",
        f"{DESCRIBED} {{}}",
        "It fails with: Pod was rejected: {}",
    ],
    ids=["journal", "event", "description", "prose"],
)
def test_a_refusal_of_whole_cores_is_read_in_every_form(form: str, words: str, code: str) -> None:
    name, diagnosis = diagnose_text(f"{form.format(f'SMT Alignment Error: {words}')}\n")
    assert (name, diagnosis.state, get_code(diagnosis)) == ("default/pod", "rejected", code)
    assert ("n-7.lab" in diagnosis.sentence.en) is not form.startswith("It fails")
    assert diagnosis.obstacle
    numbers = {"asked": 3, "per_core": 2} if code == "KubeletCpusUnaligned" else {"asked": 8, "free": 6, "per_core": 2}
    assert diagnosis.obstacle.numbers == numbers


@pytest.mark.parametrize(
    ("claims", "code"),
    [(["a-1"], "AutoscalerAdds"), (["a-1", "a-1", "a-1"], "AutoscalerAdds"), (["a-1", "b-2", "c-3"], "NodesNotTaken")],
)
def test_a_third_node_for_the_same_pod_is_no_reason_to_wait(claims: list[str], code: str) -> None:
    refusal = (
        "Warning  FailedScheduling  9m  default-scheduler  0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    )
    rows = [
        f"  Normal   Nominated         {8 - index}m   karpenter          Pod should schedule on: nodeclaim/{claim}"
        for index, claim in enumerate(claims)
    ]
    _, diagnosis = diagnose_text("Events:\n  " + "\n".join([refusal, *rows]) + "\n")
    assert get_code(diagnosis) == code
    assert f"nodeclaim/{claims[-1]}" in diagnosis.sentence.en
