"""Lines of a text that explain each other: a pod's name in prose, earlier tries, other programs' lines, broken rows."""

from pathlib import Path
from textwrap import dedent

import pytest

from ingest.cases.answers import diagnose_pods
from ingest.cases.foreign_texts import find_advice
from ingest.cases.read_case import list_pod_names, read_case, read_case_text
from ingest.cases.wrapped_lines import join_scalars, join_table_rows
from schemas.answers.diagnosis import Diagnosis

REFUSED = "Warning  FailedScheduling  9s  default-scheduler  0/6 nodes are available: 6 Insufficient cpu."


def diagnose_text(text: str) -> dict[str, Diagnosis]:
    case = read_case_text(dedent(text))
    names = list(list_pod_names(case))
    return dict(zip(names, (answer.diagnosis for answer in diagnose_pods(case, names)), strict=True))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("The pod `encoder` waits for an hour.", "encoder"),
        ("We see this on pod render-77c9d-x1:", "render-77c9d-x1"),
        ("Pod name: fit-3 (team b)", "fit-3"),
        ("batch-loader reports the following", "batch-loader"),
        ("NAME     READY   STATUS    RESTARTS   AGE\nfit-4    0/1     Pending   0          5m", "fit-4"),
    ],
    ids=["quoted", "bare", "labelled", "reporting", "the only row that waits"],
)
def test_events_without_a_name_are_about_the_pod_that_the_author_names(words: str, name: str) -> None:
    assert list(diagnose_text(f"{words}\n\n{REFUSED}\n")) == [f"default/{name}"]


@pytest.mark.parametrize(
    "words",
    [
        "Neither pod fit-1 nor pod fit-2 starts.",
        "A pod anti-affinity rule is set, and the pod spec is below.",
        "my-scheduler reports this:",
        "kubectl describe pod of the job gives:",
    ],
    ids=["two names", "words", "a component", "a command in a sentence"],
)
def test_words_that_name_no_single_pod_name_none(words: str) -> None:
    assert list(diagnose_text(f"{words}\n\n{REFUSED}\n")) == ["default/pod"]


def test_events_of_a_namespaced_command_are_in_its_namespace_and_logs_are_not() -> None:
    table = "LAST SEEN   TYPE      REASON             OBJECT      MESSAGE\n"
    row = "9s          Warning   FailedScheduling   pod/fit-0   0/6 nodes are available: 6 Insufficient cpu.\n"
    assert list(diagnose_text(f"$ kubectl get events -n nlp\n{table}{row}")) == ["nlp/fit-0"]
    assert list(diagnose_text(f"$ kubectl logs x -n tools\n\n{table}{row}")) == ["default/fit-0"]


def test_a_later_try_without_a_reason_leaves_the_answer_to_the_one_before() -> None:
    text = """
        Events:
          Warning  FailedScheduling  8m                hami-scheduler  0/4 nodes are available: 4 node unregistered.
          Warning  FilteringFailed   2m (x9 over 20m)  hami-scheduler  no available node, all node scores do not meet
        """
    (diagnosis,) = diagnose_text(text).values()
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "node unregistered"


def test_a_pause_of_coscheduling_leaves_the_answer_to_the_refusal_before() -> None:
    head = 'E1116 08:24:0{}.000000       1 coscheduling.go:133] "PreFilter failed" err="{}" pod="ml/w-0"\n'
    few = "pre-filter pod w-0 cannot find enough sibling pods, current pods number: 3, minMember of group: 8"
    text = head.format(1, few) + head.format(4, "pod with pgName: ml/w last failed in 3s, deny")
    (diagnosis,) = diagnose_text(text).values()
    assert diagnosis.obstacle
    assert (diagnosis.obstacle.code, diagnosis.obstacle.numbers["members"]) == ("GangIncomplete", 3)
    (diagnosis,) = diagnose_text(head.format(4, "pod with pgName: ml/w last failed in 3s, deny")).values()
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "GangWaits"
    assert "(group w)" in diagnosis.sentence.en


def test_an_unknown_node_is_not_written_as_a_question_mark() -> None:
    words = "Node didn't have enough resource: cpu, requested: 4000, used: 61000, capacity: 64000"
    (diagnosis,) = diagnose_text(f"The pod fit-9 ended with\n\nMessage: Pod was rejected: {words}\n").values()
    assert diagnosis.obstacle
    texts = [diagnosis.sentence, diagnosis.obstacle.remedy, *(moment.text for moment in diagnosis.timeline)]
    assert diagnosis.sentence.en.startswith("The kubelet of its node refused the pod")
    assert all("?" not in text.en and "?" not in text.zh for text in texts)


def test_quoted_and_folded_texts_of_yaml_are_joined_between_prose() -> None:
    quoted = ["  message: 'it didn''t fit, he", "    wrote, ''twice''.'"]
    folded = ["- text: >-", "    a", "    b"]
    joined = join_scalars(["the status:", *quoted, *folded, "c"])
    assert joined == ["the status:", "  message: it didn't fit, he wrote, 'twice'.", "- text: a b", "c"]
    assert join_scalars(["a: 'open", "b"]) == ["a: 'open", "b"]
    assert join_scalars(['a: "whole"', "b: 'whole'"]) == ['a: "whole"', "b: whole"]


def test_rows_of_a_wide_table_are_joined_with_their_later_columns() -> None:
    rows = ["NAME   READY   STATUS    RESTARTS   AGE", "   IP       NODE", "a-0    0/1     Pending   0          1m",
            "   <none>   n-1", "", "prose"]  # fmt: skip
    joined = join_table_rows(rows)
    assert [line.split() for line in joined[:2]] == [
        ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"],
        ["a-0", "0/1", "Pending", "0", "1m", "<none>", "n-1"],
    ]
    assert joined[2:] == ["", "prose"]


def test_lines_of_the_cluster_autoscalers_log_complete_each_other() -> None:
    text = """
        I0506 14:23:31.057557       1 scale_up.go:271] Pod nlp/fit-0 is unschedulable
        I0506 14:23:31.057577       1 scale_up.go:271] Pod nlp/fit-1 is unschedulable
        I0506 14:23:31.057849       1 pod_schedulable.go:165] Pod fit-0 can't be scheduled on group-a, predicate failed: PodFitsResources predicate mismatch, reason: Insufficient vendor.io/card
        I0506 14:23:31.057873       1 pod_schedulable.go:157] Pod fit-1 can't be scheduled on group-a. Used cached predicate check results
        W0506 14:23:31.057950       1 scale_up.go:355] Node group group-b is not ready for scaleup - backoff
        """  # noqa: E501
    answers = diagnose_text(text)
    assert list(answers) == ["nlp/fit-0", "nlp/fit-1"]
    for diagnosis in answers.values():
        assert "group-a (Insufficient vendor.io/card)" in diagnosis.sentence.en
        assert "group-b (backoff)" in diagnosis.sentence.en


def test_an_event_that_a_controller_repeats_is_about_the_pod() -> None:
    words = "Reissued from pod/lab-0: 0/6 nodes are available: 6 Insufficient cpu."
    text = f"$ kubectl describe notebook lab -n nlp\n  Warning  FailedScheduling  9s  notebook-controller  {words}\n"
    ((name, diagnosis),) = diagnose_text(text).items()
    assert name == "nlp/lab-0"
    assert diagnosis.sentence.en.startswith("6 of 6 nodes have too little cpu left")


def test_lines_of_another_program_that_explain_the_wait_stand_before_the_answer(tmp_path: Path) -> None:
    webhook = 'failed calling webhook "cards.vendor.io": failed to call webhook: Post "https://c.svc:443/w": EOF'
    (tmp_path / "all.txt").write_text(f"W1212 17:35:21.956104  1 dispatcher.go:210] {webhook}\n\nand\n\n{REFUSED}\n")
    case = read_case([tmp_path])
    assert list(list_pod_names(case)) == ["default/pod"]
    assert any("cards.vendor.io" in problem for problem in case.problems)


def test_a_try_that_a_log_names_nodes_of_is_not_counted_again_from_events_without_a_date(tmp_path: Path) -> None:
    (tmp_path / "extender.log").write_text(
        'I0712 01:12:21.100000       1 score.go:200] "request devices nums cannot exceed the total number of devices '
        'on the node." pod="ml/fit-0" request devices nums=4 node device nums=2\n'
        'I0712 01:12:21.100100       1 score.go:225] "calcScore:node not fit pod" pod="ml/fit-0" node="n-7"\n'
    )
    (tmp_path / "pod.txt").write_text(
        "Name:         fit-0\nNamespace:    ml\nNode:         <none>\nStatus:       Pending\nContainers:\n  main:\n"
        "    Limits:\n      nvidia.com/gpu:  4\nEvents:\n  Type     Reason            Age   From            Message\n"
        "  ----     ------            ----  ----            -------\n"
        "  Warning  FailedScheduling  44s   hami-scheduler  0/1 nodes are available: 1 NodeUnfitPod.\n"
    )
    case = read_case([tmp_path])
    (answer,) = diagnose_pods(case, ["ml/fit-0"])
    assert answer.diagnosis.obstacle
    assert answer.diagnosis.obstacle.code == "NodeInsufficientDevice"


def test_rays_autoscaler_is_named_with_what_no_group_offers() -> None:
    line = (
        b"WARNING x.py:838 -- The autoscaler could not find a node type to satisfy the request: [{'GPU': 2.0}]. Please"
    )
    assert "[{'GPU': 2.0}]" in find_advice([line])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("0/9 nodes are available: 9 node(s) had memory pressure.", "NodeConditionTaint"),
        (
            "0/9 nodes are available: 9 Pod is waiting for preemptible or free resource to appear: none left.",
            "HivedWaits",
        ),
        (
            'running Reserve plugin "DynamicResources": waiting for resource driver to provide information',
            "ClaimDriverWaits",
        ),
    ],
)
def test_words_of_older_and_other_schedulers_are_known(words: str, code: str) -> None:
    (diagnosis,) = diagnose_text(f"Warning  FailedScheduling  9s  default-scheduler  {words}\n").values()
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == code


def test_nodes_in_no_count_are_named_next_to_the_counted_ones() -> None:
    preemption = "preemption: 0/7 nodes are available: 7 No preemption victims found for incoming pod."
    text = f"Warning  FailedScheduling  9s  hami-scheduler  0/7 nodes are available: 5 Insufficient cpu. {preemption}\n"
    (diagnosis,) = diagnose_text(text).values()
    assert any("2 of 7 nodes are in no count" in other.sentence.en for other in diagnosis.other_obstacles)
    cut = (
        "Warning  FailedScheduling  9s  hami-scheduler  0/7 nodes are available: 5 Insufficient cpu, 1 node(s) d ...\n"
    )
    (diagnosis,) = diagnose_text(cut).values()
    assert all("in no count" not in other.sentence.en for other in diagnosis.other_obstacles)


def test_a_request_above_yunikorns_placeholder_is_compared_with_it() -> None:
    request, held = "map[memory:3221225472 vcore:2000]", "map[memory:2147483648 vcore:2000]"
    words = (
        f"Task group 'w' in application 'a-1': allocation resources '{request}' are not matching placeholder '{held}'"
    )
    rows = f"  Normal  Informational  9s  yunikorn  {words} allocation with ID 'x'\n"
    refusal = "  Warning  FailedScheduling  9s  yunikorn  waits\n"
    (diagnosis,) = diagnose_text(f"$ kubectl describe pod w-1\n{rows}{refusal}").values()
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "PlaceholderTooSmall"
    assert "memory 3Gi asked, memory 2Gi held" in diagnosis.sentence.en


def test_a_status_is_of_the_pod_that_the_author_names_in_its_namespace() -> None:
    text = """
        Pod trainer-77a1 in namespace devpod waits, and its status says

        status:
          conditions:
          - lastTransitionTime: "2025-01-01T18:02:11Z"
            message: '0/4 nodes are available: 4 Insufficient nvidia.com/gpu.'
            reason: Unschedulable
            status: "False"
            type: PodScheduled
          phase: Pending
        """
    assert list(diagnose_text(text)) == ["devpod/trainer-77a1"]


@pytest.mark.parametrize(
    ("words", "namespace"),
    [
        ("pod `fit-7` in the `lab` namespace", "lab"),
        ("pod `fit-7` from namespace: lab", "lab"),
        ("pod `fit-7`，命名空间：lab", "lab"),
        ("pod `fit-7` in the same namespace", "default"),
        ("pod `fit-7`, in namespace lab or in namespace lab-2", "default"),
    ],
)
def test_a_namespace_is_named_in_the_line_of_its_pod(words: str, namespace: str) -> None:
    assert list(diagnose_text(f"{words}\n\n{REFUSED}\n")) == [f"{namespace}/fit-7"]


def test_an_event_of_kais_pod_group_is_about_the_pod_in_its_words() -> None:
    words = "Resources were not found for pod ml/ring-0 due to: No node in the default node-pool has a.com/m resources."
    row = f"Normal  Unschedulable  3m14s (x9 over 11m)  kai-scheduler  Unable to schedule podgroup: 2 {words}\n{words}"
    (name, diagnosis), *others = diagnose_text(row).items()
    assert (name, others) == ("ml/ring-0", [])
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "PoolWithoutResource"


def test_volcanos_words_about_a_gang_are_of_each_member_that_waits() -> None:
    """Volcano up to 1.5 ends them with a stop; the number behind the slash counts the members that exist."""
    text = """
        ring-worker-0    0/1     Pending   0    13s
        ring-worker-1    0/1     Pending   0    13s

          Warning  FailedScheduling  65s   volcano  3/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 3 minAvailable.
        """  # noqa: E501
    diagnoses = diagnose_text(text)
    assert list(diagnoses) == ["default/ring-worker-0", "default/ring-worker-1"]
    for diagnosis in diagnoses.values():
        assert diagnosis.obstacle
        assert diagnosis.obstacle.code == "GangIncomplete"
        assert "2 of 3, 1 is missing" in diagnosis.sentence.en


def test_nodes_that_only_kube_scheduler_refused_stand_beside_those_that_hami_names(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(
        "Events:\n"
        "  Type     Reason            Age   From            Message\n"
        "  ----     ------            ----  ----            -------\n"
        "  Warning  FailedScheduling  16s   hami-scheduler  0/9 nodes are available: 2 node(s) had untolerated taint "
        "{dedicated: infer}, 3 NodeUnfitPod, 4 node unregistered.\n"
        "  Warning  FilteringFailed   16s   hami-scheduler  2 nodes CardInsufficientMemory(node-a,node-b)\n"
        "  Warning  FilteringFailed   16s   hami-scheduler  1 nodes CardTypeMismatch(node-c)\n"
    )
    (answer,) = diagnose_pods(read_case([tmp_path]), ["default/pod"])
    # Whether the two tainted nodes have devices that the pod accepts, nobody has looked.
    assert answer.diagnosis.headline.en == "2 of 9 nodes lack memory."
    assert [(other.code, other.numbers["nodes"]) for other in answer.diagnosis.other_obstacles] == [
        ("CardTypeMismatch", 1), ("TaintNotTolerated", 2), ("node unregistered", 4),
    ]  # fmt: skip
