"""Texts that name no pod: events of several pods are separated, and joined with the log that names one."""

import json
import re

import pytest

from ingest.cases.answers import diagnose_pods
from ingest.cases.read_case import list_pod_names, read_case_text
from tests.support.builders.klog_lines import write_klog

DEVICES = "0/6 nodes are available: 6 Insufficient amd.com/gpu."
TAINT = "0/6 nodes are available: 6 node(s) had untolerated taint {owner: audio}."
HEADING = "Events:\n  Type     Reason            Age   From               Message\n"


def write_row(words: str, reason: str = "FailedScheduling", reporter: str = "default-scheduler") -> str:
    age = "3m" if words == TAINT else "4m"
    return f"  Warning  {reason}  {age}  {reporter}  {words}\n"


def list_codes(text: str) -> dict[str, str]:
    case = read_case_text(text)
    answers = [answer.diagnosis for answer in diagnose_pods(case, list_pod_names(case))]
    return {f"{answer.namespace}/{answer.name}": answer.obstacle.code if answer.obstacle else "" for answer in answers}


@pytest.mark.parametrize(
    "text",
    [
        f"The trainer\n\n{HEADING}{write_row(DEVICES)}\nand the notebook\n\n{HEADING}{write_row(TAINT)}",
        f"{HEADING}{write_row(DEVICES)}{HEADING}{write_row(TAINT)}",
        f"One says\n> {DEVICES}\nand another one\n> {TAINT}\n",
        f"```\n{write_row(DEVICES)}```\nThe second:\n```\n{write_row(TAINT)}```\n",
    ],
    ids=["two descriptions", "headings only", "sentences", "fences"],
)
def test_events_of_two_pods_are_two_pods(text: str) -> None:
    assert list_codes(text) == {"default/pod": "ResourceShortOrMissing", "default/pod-2": "TaintNotTolerated"}


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADING}{write_row(DEVICES)}\n{write_row(TAINT)}",
        f"{write_row(DEVICES)}\nI ended the other jobs, and now it is\n\n{write_row(TAINT)}",
        f"My pod: {TAINT}\nThe description has it too:\n{write_row(TAINT)}",
    ],
    ids=["one table with a gap", "a later moment", "the same words"],
)
def test_parts_about_one_pod_are_one_pod(text: str) -> None:
    assert list_codes(text) == {"default/pod": "TaintNotTolerated"}


def test_a_refused_pod_below_a_placed_one_is_another() -> None:
    placed = "Normal  Scheduled  9m  default-scheduler  Successfully assigned nlp/serve-0 to rack-2\n" + write_row(
        "Allocate failed due to no healthy devices present", "UnexpectedAdmissionError", "kubelet"
    )
    codes = list_codes(f"This one:\n```\n{placed}```\nand the other:\n```\n{write_row(DEVICES)}```\n")
    assert codes["default/pod"] == "ResourceShortOrMissing"
    assert set(codes) == {"nlp/serve-0", "default/pod"}


def test_two_copies_of_a_status_are_two_pods_with_the_words_of_their_conditions() -> None:
    status = (
        "```\nstatus:\n  phase: Pending\n  conditions:\n  - type: PodScheduled\n    status: 'False'\n"
        "    reason: Unschedulable\n    message: '{}'\n```\n"
    )
    text = f"A\n{status.format(DEVICES)}B\n{status.format(TAINT)}"
    assert list_codes(text) == {"default/pod": "ResourceShortOrMissing", "default/pod-2": "TaintNotTolerated"}


@pytest.mark.parametrize("is_first", [True, False])
def test_events_without_a_name_are_of_the_only_pod_of_the_log(is_first: bool) -> None:
    line = write_klog(f'"Unable to schedule pod; no fit; waiting" pod="nlp/bert-0" err="{DEVICES}"', "schedule_one.go")
    row = write_row("no available node, 6 nodes do not meet", "FilteringFailed", "hami-scheduler")
    parts = [HEADING + row, f"\nThe scheduler's log:\n\n{line.decode()}\n"]
    case = read_case_text("".join(parts if is_first else reversed(parts)))
    assert list(list_pod_names(case)) == ["nlp/bert-0"]
    notes = [event.note for event in case.objects.list_events()]
    assert any("6 nodes do not meet" in note for note in notes)


def test_events_without_a_name_are_of_no_pod_of_a_log_of_several() -> None:
    lines = [
        write_klog(f'"Unable to schedule pod; no fit; waiting" pod="nlp/{name}" err="{TAINT}"', "schedule_one.go")
        for name in ("bert-0", "bert-1")
    ]
    text = write_row(DEVICES) + "\n" + "\n".join(line.decode() for line in lines) + "\n"
    assert list_codes(text)["default/pod"] == "ResourceShortOrMissing"


def test_a_shortened_pod_is_answered_by_its_condition() -> None:
    manifest = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: bert-9, namespace: nlp}\nspec: {containers: [{name: main}]}\n"
        "status:\n  phase: Pending\n  conditions:\n  - {type: PodScheduled, status: 'False', reason: Unschedulable,\n"
        f"     message: '{TAINT}'}}\n"
    )
    assert list_codes(manifest) == {"nlp/bert-9": "TaintNotTolerated"}
    dated = re.sub(r"reason: U", "lastTransitionTime: '2026-03-04T12:00:00Z', reason: U", manifest)
    assert list_codes(dated) == list_codes(manifest)


@pytest.mark.parametrize("label", ["Pod 名称：", "pod名: ", "POD 的名字是 ", "pod名字为`"])
def test_a_chinese_label_names_the_pod(label: str) -> None:
    assert list(list_codes(f"版本 1.29\n{label}ocr\n报错：\n{write_row(TAINT)}\n")) == ["default/ocr"]


def test_an_object_behind_marks_of_comments_is_read_where_no_other_is() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": TAINT}
    condition |= {"lastTransitionTime": "2026-03-04T12:00:00Z"}
    quoted = (
        "# apiVersion: v1\n# kind: Pod\n# metadata: {name: ocr-1, namespace: lab, uid: u-1}\n"
        "# spec: {schedulerName: default-scheduler, containers: [{name: main}]}\n"
        f"# status:\n#   phase: Pending\n#   conditions: [{json.dumps(condition)}]\n"
    )
    assert list_codes(f"what the cluster has:\n\n{quoted}") == {"lab/ocr-1": "TaintNotTolerated"}
    active = "apiVersion: v1\nkind: Pod\nmetadata: {name: live}\nspec: {containers: [{name: main}]}\n"
    names = list_pod_names(read_case_text(f"what the cluster has:\n\n{active}{quoted}"))
    assert list(names) == ["default/live"]
