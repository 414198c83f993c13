"""Refusals that other programs repeat: runners of builds and workflows, exporters of events, journals of kubelets."""

import json

import pytest

from engine.cases.unmade_causes import list_unmade
from ingest.cases.answers import diagnose_pods
from ingest.cases.read_case import list_pod_names, read_case_text
from ingest.cases.workload_answers import diagnose_workload

WORDS = "0/7 nodes are available: 2 node(s) had untolerated taint {lab: only}, 5 Insufficient amd.com/gpu."


def list_sentences(text: str) -> dict[str, tuple[str, str]]:
    """List code and sentence of each pod's obstacle."""
    case = read_case_text(text)
    names = list_pod_names(case)
    obstacles = [answer.diagnosis.obstacle for answer in diagnose_pods(case, names)]
    return {
        name: (obstacle.code, obstacle.sentence.en) for name, obstacle in zip(names, obstacles, strict=True) if obstacle
    }


def list_codes(text: str) -> dict[str, str]:
    return {pod: code for pod, (code, _) in list_sentences(text).items()}


RUNNER = f"""\
Waiting for pod build/runner-x7-project-9-concurrent-1 to be running, status is Pending
WARNING: Event retrieved from the cluster: {WORDS}
"""
JENKINS = f"""\
Created Pod: kubernetes build/fold-3-k2q-9xv
[PodInfo] build/fold-3-k2q-9xv
\tPod [Pending][Unschedulable] {WORDS}
[Warning][build/fold-3-k2q-9xv][FailedScheduling] {WORDS}
"""
AIRFLOW = f"""\
[2026-03-04, 08:12:11 UTC] {{pod_manager.py:121}} WARNING - Pod not yet started: fold-8z7pk0qy
[2026-03-04, 08:14:11 UTC] {{pod.py:979}} INFO - Pod Event: FailedScheduling - {WORDS}
"""
FLYTE = f"Last Error: timeout expired; pod: bio-dev/f9d3-n0-0: Unschedulable:{WORDS}\n"
UNREADY = "fold-77d9-z2x9p: containers with unready status: [fold]"
RANCHER = f"Deployment fold (namespace bio) does not have minimum availability. {UNREADY}; {WORDS}\n"
PREFECT = f"""\
14:03:11.501 | INFO    | prefect.flow_runs.worker - Job event 'SuccessfulCreate': Created pod: fold-x7k2p-4lw8s
14:03:11.502 | INFO    | prefect.flow_runs.worker - Pod event 'FailedScheduling' at 2026-03-04 14:02:13: {WORDS}
"""
METAFLOW = (
    f"2026-03-04 10:00:00.123 [12/fold/5 (pid 99)] [pod t-abc12-x9z8y] Task is starting (Pod is Pending: {WORDS})\n"
)
SKAFFOLD = f" - bio:deployment/fold: {WORDS}\n    - bio:pod/fold-6f7c9d-x2k9z: {WORDS}\n"
QUERY = f"""\
$ kubectl get events -n bio -o json | jq -c '.items[] | {{name: .involvedObject.name, reason, message, count}}'
{json.dumps({"name": "fold-7c9", "reason": "FailedScheduling", "message": WORDS, "count": 12})}
{json.dumps({"name": "fold-7c9", "reason": "NotTriggerScaleUp", "message": "pod didn't trigger scale-up: 1 max"})}
"""
_EXPORTED = {"level": "warn", "reason": "FailedScheduling", "namespace": "bio", "name": "fold-5", "msg": WORDS}
CONTAINER_LOG = json.dumps({"log": f"{json.dumps(_EXPORTED)}\n", "stream": "stderr"}) + "\n"


@pytest.mark.parametrize(
    ("text", "pod"),
    [
        (CONTAINER_LOG, "bio/fold-5"),
        (PREFECT, "default/fold-x7k2p-4lw8s"),
        (METAFLOW, "default/t-abc12-x9z8y"),
        (SKAFFOLD, "bio/fold-6f7c9d-x2k9z"),
        (QUERY, "bio/fold-7c9"),
        (RUNNER, "build/runner-x7-project-9-concurrent-1"),
        (JENKINS, "build/fold-3-k2q-9xv"),
        (AIRFLOW, "default/fold-8z7pk0qy"),
        (FLYTE, "bio-dev/f9d3-n0-0"),
        (RANCHER, "bio/fold-77d9-z2x9p"),
    ],
    ids=[
        "an exporter's container log",
        "Prefect",
        "Metaflow",
        "Skaffold",
        "a query of jq",
        "a runner of GitLab",
        "Jenkins",
        "Airflow",
        "Flyte",
        "Rancher",
    ],
)
def test_a_program_that_makes_pods_names_its_own(text: str, pod: str) -> None:
    assert list_codes(text) == {pod: "ResourceShortOrMissing"}


EVENT = {
    "metadata": {"name": "fold-0.17", "namespace": "bio"},
    "involvedObject": {"kind": "Pod", "namespace": "bio", "name": "fold-0", "uid": "aa"},
    "reason": "FailedScheduling",
    "message": WORDS,
    "source": {"component": "default-scheduler"},
    "type": "Warning",
}
DATED = EVENT | {"lastTimestamp": "2026-03-04T10:00:00Z"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DATED),
        json.dumps({"verb": "ADDED", "event": DATED}),
        json.dumps([{"insertId": "1", "jsonPayload": EVENT, "timestamp": "2026-03-04T10:00:00Z"}], indent=2),
        f"{json.dumps({'verb': 'ADDED', 'event': DATED})}\n{json.dumps({'verb': 'UPDATED', 'event': DATED})}\n",
    ],
    ids=["an exporter", "a router", "a store of logs", "two lines"],
)
def test_an_event_is_read_in_what_programs_wrap_around_it(text: str) -> None:
    assert list_codes(text) == {"bio/fold-0": "ResourceShortOrMissing"}


def test_a_line_of_a_kubelets_journal_names_pod_and_node() -> None:
    words = "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices amd.com/gpu"
    line = 'I0304 03:04:10.442500    3921 kubelet.go:2306] "Pod admission denied" podUID="6d" pod="bio/fold-0" '
    line += f'reason="UnexpectedAdmissionError" message="{words}, which is unexpected"'
    ((pod, (code, sentence)),) = list_sentences(f"Mar 04 03:04:10 rack-7 kubelet[3921]: {line}\n").items()
    assert (pod, code) == ("bio/fold-0", "KubeletUnhealthyDevices")
    assert "rack-7" in sentence


GROUP = """\
Name:         pg-fold-0
Namespace:    bio
API Version:  scheduling.run.ai/v2alpha2
Kind:         PodGroup
Spec:
  Min Member:  1
Status:
  Scheduling Conditions:
    Last Transition Time:  2026-03-04T10:00:00Z
    Message:               Resources were not found for pod bio/fold-0 due to: WORDS
    Reason:                PodSchedulingErrors
    Status:                True
    Type:                  UnschedulableOnNodePool
"""


def test_a_group_of_kai_names_the_pod_that_its_condition_is_about() -> None:
    words = "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs."
    assert list_codes(GROUP.replace("WORDS", words)) == {"bio/fold-0": "ResourceShortOrMissing"}


def test_a_file_is_no_name_of_a_pod() -> None:
    assert list_codes(f"After deploying the pod 'fold-0.yaml' it shows:\n{WORDS}") == {
        "default/pod": "ResourceShortOrMissing"
    }


def test_numbers_of_nodes_are_no_name_of_a_pod() -> None:
    assert list_codes(f"My pod: {WORDS}") == {"default/pod": "ResourceShortOrMissing"}


QUEUED = """\
Events:
  Type    Reason            Age    From      Message
  ----    ------            ----   ----      -------
  Normal  Scheduling        2m45s  yunikorn  bio/fold-0 is queued and waiting for allocation
  Normal  PodUnschedulable  2m44s  yunikorn  Task bio/fold-0 is pending for the requested resources become available
"""
DISCARDED = (
    "I1226 18:04:03.600457    8347 session.go:307] Discard Job <bio/fold> because 1/3 tasks in gang unschedulable: "
    "0/1 nodes are available, 1 insufficient cpu.\n"
)
TWO_LINES = """\
no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs.
6 node(s) didn't have enough of mig profile: nvidia.com/mig-1g.5gb."""


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("My deployment has PodUnschedulable Cannot schedule pods: Insufficient amd.com/gpu.", ["NodesUncounted"]),
        ('hami-scheduler: "no available node, all node scores do not meet "', ["FilteringFailed"]),
        ("the scheduler reports errors such as `1 nodes CardTypeMismatch(n-157)`.", ["CardTypeMismatch"]),
        (QUEUED, ["SchedulerSays"]),
        (GROUP.replace("WORDS", TWO_LINES), ["ResourceShortOrMissing"]),
    ],
    ids=["console", "HAMi", "code", "YuniKorn", "two lines"],
)
def test_words_without_a_row_are_a_schedulers(text: str, codes: list[str]) -> None:
    assert list(list_codes(text).values()) == codes


def test_the_second_line_of_kais_message_counts_too() -> None:
    ((_, sentence),) = list_sentences(GROUP.replace("WORDS", TWO_LINES)).values()
    assert "nvidia.com/mig-1g.5gb" in sentence


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (DISCARDED, "fold", "1/3 tasks in gang unschedulable: 0/1 nodes are available, 1 insufficient cpu"),
        ("event:\nqueue resource quota insufficient\n", "pod", "queue resource quota insufficient"),
    ],
)
def test_words_about_a_group_are_a_groups(text: str, name: str, words: str) -> None:
    case = read_case_text(text)
    (key,) = list_unmade(case.objects)
    (group,) = diagnose_workload(case, key).groups
    assert (key.name, words in (group.obstacle.sentence.en if group.obstacle else "")) == (name, True)
