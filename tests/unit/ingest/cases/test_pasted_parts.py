"""Texts that people paste into a question, read as the objects and events that they show."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.cases.answers import diagnose_pods
from ingest.cases.pasted_texts import parse_pasted
from ingest.cases.read_case import ClusterCase, list_pod_names, read_case, read_case_text
from ingest.cases.unnamed_pods import DEFAULT_NAME
from schemas.answers.diagnosis import Diagnosis

WRITTEN = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
REFUSAL = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient amd.com/gpu."
DESCRIBED = f"""\
Name:         bert-0
Namespace:    nlp
Labels:       app=bert
Status:       Pending
Node:         <none>
Containers:
  main:
    Limits:
      amd.com/gpu:  2
Events:
  Type     Reason            Age   From               Message
  ----     ------            ----  ----               -------
  Warning  FailedScheduling  5m    default-scheduler  {REFUSAL}
"""


def select(text: str, kind: str) -> list[Any]:
    return [entry for entry in parse_pasted(text, WRITTEN) if entry["kind"] == kind]


def diagnose_text(text: str) -> Diagnosis:
    case = read_case_text(text)
    (answer,) = diagnose_pods(case, list_pod_names(case))
    return answer.diagnosis


@pytest.mark.parametrize(
    "text",
    [
        f"What is wrong?\n```\nalice@login1:~$ kubectl describe pod bert-0 -n nlp\n{DESCRIBED}```\nThanks!",
        f"$ oc describe po/bert-0\n{DESCRIBED}\n$ oc get nodes\nNAME  STATUS\n",
        "> " + DESCRIBED.replace("\n", "\n> "),
        "    " + DESCRIBED.replace("\n", "\n    "),
    ],
    ids=["fenced behind a prompt", "two commands", "quoted", "indented"],
)
def test_a_description_is_read_among_other_text(text: str) -> None:
    (pod,) = select(text, "Pod")
    (event,) = select(text, "Event")
    assert (pod["metadata"]["namespace"], pod["metadata"]["name"]) == ("nlp", "bert-0")
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"amd.com/gpu": "2"}
    assert event["message"] == REFUSAL
    assert event["firstTimestamp"] == f"{WRITTEN - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.parametrize(
    ("row", "reporter", "name"),
    [
        (f"  Warning  FailedScheduling  9s (x2 over 1m)  default-scheduler  {REFUSAL}", "default-scheduler", ""),
        (f"Warning FailedScheduling default-scheduler {REFUSAL}", "default-scheduler", ""),
        (f"9s   Warning   FailedScheduling   pod/bert-0   {REFUSAL}", "the scheduler", "bert-0"),
        (f"nlp   9s   Warning   FailedScheduling   pod/bert-0   {REFUSAL}", "the scheduler", "bert-0"),
        (
            f"1h\t9s\t12\tbert-0.15d3a2f0b9c8e7d6\tPod\t\tWarning\tFailedScheduling\tdefault-scheduler\t{REFUSAL}",
            "default-scheduler",
            "bert-0",
        ),
        (f"  1h\t9s\t12\tdefault-scheduler\t\t\tWarning\t\tFailedScheduling\t{REFUSAL}", "default-scheduler", ""),
        (f"2026-03-04T11:59:00Z [Warning] {REFUSAL}", "the scheduler", ""),
        (f"`{REFUSAL}`", "the scheduler", ""),
    ],
    ids=["describe", "without age", "events", "all namespaces", "old events", "old describe", "front end", "words"],
)
def test_a_row_of_any_table_is_the_same_event(row: str, reporter: str, name: str) -> None:
    (event,) = select(row, "Event")
    assert (event["reason"], event["message"]) == ("FailedScheduling", REFUSAL)
    assert event["source"]["component"] == reporter
    assert event["involvedObject"]["name"] == (name or DEFAULT_NAME)
    assert diagnose_text(row).state == "refused"


def test_a_row_that_names_the_pod_names_it_for_its_table() -> None:
    text = (
        "Events:\n"
        "  Normal   Scheduled    2m  default-scheduler  Successfully assigned nlp/bert-1 to rack-4\n"
        "  Warning  FailedMount  1m  kubelet            Unable to attach or mount volumes: timed out\n"
    )
    (pod,) = select(text, "Pod")
    assert (pod["metadata"]["name"], pod["spec"]["nodeName"]) == ("bert-1", "rack-4")
    assert "rack-4" in diagnose_text(text).sentence.en


def test_a_command_names_the_pod_of_the_rows_below_it() -> None:
    (pod,) = select(f"kubectl -n nlp describe pods bert-2 | tail -1\n{REFUSAL}", "Pod")
    assert (pod["metadata"]["namespace"], pod["metadata"]["name"]) == ("nlp", "bert-2")


def test_words_of_a_kubelet_that_refused_a_pod_make_it_a_refused_pod() -> None:
    text = "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices amd.com/gpu"
    (pod,) = select(text, "Pod")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "UnexpectedAdmissionError")
    diagnosis = diagnose_text(text)
    assert diagnosis.state == "rejected"
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "KubeletUnhealthyDevices"


def test_the_status_of_a_pod_is_read_without_the_pod() -> None:
    text = (
        "status:\n  phase: Failed\n  reason: Evicted\n  message: >-\n    The node was low on\n    resource: memory.\n"
    )
    (pod,) = select(text, "Pod")
    assert pod["status"]["message"] == "The node was low on resource: memory."


def test_objects_between_sentences_are_read_once() -> None:
    text = (
        "My pod:\n```yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: bert-3, namespace: nlp}\n"
        f"status: {{phase: Pending, conditions: [{{type: PodScheduled, status: 'False', message: '{REFUSAL}'}}]}}\n"
        "```\n"
    )
    (pod,) = select(text, "Pod")
    assert pod["metadata"]["name"] == "bert-3"
    assert not select(text, "Event")


def test_a_line_of_karpenters_log_is_about_its_pod() -> None:
    text = (
        '{"level":"ERROR","message":"Could not schedule pod, incompatible '
        'with nodepool \\"big\\", did not tolerate team=a:NoSchedule","pod":"nlp/bert-4"}'
    )
    (event,) = select(text, "Event")
    assert (event["source"]["component"], event["involvedObject"]["name"]) == ("karpenter", "bert-4")
    obstacle = diagnose_text(text).obstacle
    assert obstacle is not None
    assert obstacle.code == "AutoscalerCannot"


def test_an_event_in_the_log_of_its_reporter_is_about_its_object() -> None:
    text = (
        'I0304 11:00:00.000001       1 e.go:1] Event(v1.ObjectReference{Kind:"Pod", Namespace:"nlp", Name:"bert-5"'
        "}): type: 'Normal' reason: 'NotTriggerScaleUp' pod didn't trigger scale-up: 2 max node group size reached"
    )
    (event,) = select(text, "Event")
    assert (event["reason"], event["involvedObject"]["namespace"]) == ("NotTriggerScaleUp", "nlp")


def test_an_error_of_a_kubelets_log_is_about_its_pod() -> None:
    text = (
        'E0304 11:00:00.000001    4242 pod_workers.go:1301] "Failed to prepare dynamic resources" err="prepare dynamic'
        ' resources: DRA driver gpu.example.com is not registered" pod="nlp/bert-6"'
    )
    (event,) = select(text, "Event")
    assert (event["reason"], event["involvedObject"]["name"]) == ("FailedPrepareDynamicResources", "bert-6")
    assert "gpu.example.com is not registered" in diagnose_text(text).sentence.en


def test_a_pod_that_the_server_refused_is_missing_with_the_quotas_amounts() -> None:
    text = (
        'Error from server (Forbidden): error when creating "x.yaml": pods "bert-7" is forbidden: exceeded quota: '
        "gpus, requested: requests.amd.com/gpu=4, used: requests.amd.com/gpu=6, limited: requests.amd.com/gpu=8"
    )
    diagnosis = diagnose_text(text)
    assert (diagnosis.name, diagnosis.state) == ("bert-7", "missing")
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "QuotaExceeded"
    assert "quota gpus: requests.amd.com/gpu 6 of 8 used, 4 asked" in diagnosis.sentence.en


def test_a_scheduler_s_log_is_read_as_a_log_and_its_words_are_not_read_twice(tmp_path: Path) -> None:
    log = tmp_path / "kube-scheduler.log"
    log.write_text(
        'I0304 11:00:00.000001       1 schedule_one.go:1080] "Unable to schedule pod; no fit; waiting" '
        f'pod="nlp/bert-8" err="{REFUSAL}"\n'
    )
    assert list(list_pod_names(read_case([log]))) == ["nlp/bert-8"]


def test_a_table_whose_names_were_replaced_is_read_by_its_gaps(tmp_path: Path) -> None:
    table = tmp_path / "events.txt"
    table.write_text(
        "LAST SEEN   TYPE      REASON             OBJECT                               MESSAGE\n"
        f"5m          Warning   FailedScheduling   pod/x   {REFUSAL}\n"
    )
    case = read_case([table])
    assert list(list_pod_names(case)) == ["default/x"]
    assert find_code(case) == "ResourceShortOrMissing"


def find_code(case: ClusterCase) -> str:
    (answer,) = diagnose_pods(case, list_pod_names(case))
    return answer.diagnosis.obstacle.code if answer.diagnosis.obstacle else ""


def test_prose_has_nothing_to_read() -> None:
    assert parse_pasted("Why is my pod pending? It says something about GPUs.\n", WRITTEN) == []


def test_m11_a_word_of_a_certificate_does_not_hold_the_events_up() -> None:
    """M11: 70,000 letters took 48 s, and the time grew with the square: the tests' limit of time would end this one."""
    objects = parse_pasted(f"Warning FailedScheduling {REFUSAL}\n{'a' * 400_000}\n", WRITTEN)
    assert [entry["message"] for entry in objects if entry["kind"] == "Event"] == [REFUSAL]
