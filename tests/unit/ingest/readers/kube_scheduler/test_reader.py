"""kube-scheduler's own log: what its lines say by version, and lines that are no decision."""

import pytest

from engine.diagnosis.logged_facts import UnfinishedAttempt
from engine.summaries.answer import encode_schedulerlog
from ingest.cases.log_pods import LogPods, PodInLog
from ingest.readers.kube_scheduler.grammar import is_kube_scheduler_line
from ingest.readers.kube_scheduler.reader import KubeSchedulerLog
from ingest.readers.registry import find_source
from schemas.events import BindConcluded
from tests.support.builders.klog_lines import list_ends, read_lines, write_klog

FILE = "schedule_one.go"
WORDS = "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable."
BEGUN = write_klog('"Attempting to schedule pod" pod="ml/p"', FILE)
REFUSED = write_klog(f'"Unable to schedule pod; no fit; waiting" pod="ml/p" err="{WORDS}"', FILE, 1)


@pytest.mark.parametrize(
    "refused",
    [
        REFUSED,
        write_klog(f"Unable to schedule ml/p: no fit: {WORDS}; waiting", "factory.go", 1),
    ],
    ids=["since 1.19", "1.18"],
)
def test_a_refusal_counts_nodes_by_reason(refused: bytes) -> None:
    (end,) = list_ends(read_lines(KubeSchedulerLog(), [BEGUN, refused]))
    assert str(end.pod) == "ml/p"
    assert end.offered_nodes == 3
    assert end.refused_nodes == {"Insufficient cpu": 2, "node(s) were unschedulable": 1}
    assert end.scheduler == "kube-scheduler"


def test_an_empty_cluster_has_no_nodes() -> None:
    line = write_klog('"Unable to schedule pod; no nodes are registered to the cluster; waiting" pod="ml/p"', FILE)
    (end,) = list_ends(read_lines(KubeSchedulerLog(), [line]))
    assert "no nodes available" in end.error


def test_a_bind_names_its_node() -> None:
    line = write_klog('"Successfully bound pod to node" pod="ml/p" node="n1" evaluatedNodes=3 feasibleNodes=1', FILE)
    binds = [event for event in read_lines(KubeSchedulerLog(), [BEGUN, line]) if isinstance(event, BindConcluded)]
    assert [(bind.node, bind.bound) for bind in binds] == [("n1", True)]


def test_an_error_ends_the_attempt_in_its_words() -> None:
    line = write_klog('"Error scheduling pod; retrying" err="the extender does not answer" pod="ml/p"', FILE, 1, "E")
    (end,) = list_ends(read_lines(KubeSchedulerLog(), [BEGUN, line]))
    assert end.chosen is None
    assert "the extender does not answer" in (end.error or end.scheduler_message)


def test_an_attempt_without_an_end_is_noted() -> None:
    notes: list[object] = []
    assert list_ends(read_lines(KubeSchedulerLog(note=notes.append), [BEGUN])) == []
    (note,) = notes
    assert isinstance(note, UnfinishedAttempt)
    assert (note.namespace, note.name) == ("ml", "p")


def test_its_lines_are_recognised_and_others_are_not() -> None:
    assert is_kube_scheduler_line(REFUSED)
    source = find_source(REFUSED)
    assert source is not None
    assert source.name == "kube-scheduler-log"
    assert not is_kube_scheduler_line(write_klog("hello", "main.go"))
    assert not is_kube_scheduler_line(b'"Unable to schedule pod; no fit; waiting" pod="ml/p"')


def test_its_state_is_restored_and_that_of_another_version_refused() -> None:
    reader, other = KubeSchedulerLog(), KubeSchedulerLog()
    read_open = reader.save()
    other.restore(read_open)
    assert other.save() == read_open
    with pytest.raises(ValueError, match="version 99"):
        other.restore(read_open.replace(b'"version":1', b'"version":99'))


ENDED = 'running {} plugin "Volumes": no room'


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        ('"Failed running Reserve plugin" err="no room" plugin="Volumes" pod="ml/p"', "Reserve"),
        ('"Plugin failed" err="no room" plugin="Volumes" pod="ml/p"', "Reserve/Permit"),
        ('"Plugin failed" err="no room" logger="Permit" plugin="Volumes" pod="ml/p"', "Permit"),
        ('"Plugin failed" err="no room" plugin="Volumes" pod="ml/p" node="n1"', "PreBind"),
        ('"Plugin Failed" err="no room" plugin="Volumes" pod="ml/p" node="n1"', "Bind"),
    ],
)
def test_a_plugin_that_failed_after_the_choice_ends_the_attempt(message: str, phase: str) -> None:
    line = write_klog(message, "framework.go", 1, "E")
    assert is_kube_scheduler_line(line)
    (end,) = list_ends(read_lines(KubeSchedulerLog(), [BEGUN, line]))
    assert ENDED.format(phase) in (end.error or end.scheduler_message)


def test_a_plugin_s_failure_and_the_end_of_its_attempt_are_one_attempt() -> None:
    failed = write_klog('"Plugin failed" err="no room" plugin="Volumes" pod="ml/p" node="n1"', "framework.go", 1, "E")
    words = ENDED.format("PreBind").replace('"', '\\"')
    ended = write_klog(f'"Error scheduling pod; retrying" err="{words}" pod="ml/p"', FILE, 1, "E")
    assert len(list_ends(read_lines(KubeSchedulerLog(), [BEGUN, failed, ended]))) == 1
    assert len(list_ends(read_lines(KubeSchedulerLog(), [BEGUN, failed, BEGUN, failed, ended]))) == 2


def test_a_plugin_that_failed_in_a_trial_of_preemption_is_no_end() -> None:
    line = write_klog(
        '"Plugin failed" err="x" pod="ml/p" node="n1" operation="addPod" plugin="V"', "framework.go", 1, "E"
    )
    assert list_ends(read_lines(KubeSchedulerLog(), [BEGUN, line])) == []


def write_attempts(name: str, count: int, node: str = "") -> list[bytes]:
    """Write refusals of a pod, the last of them with other counts, and its bind if a node is given."""
    lines = [
        write_klog(f'"Unable to schedule pod; no fit; waiting" pod="ml/{name}" err="{WORDS}"', FILE, second)
        for second in range(count - 1)
    ]
    words = "0/2 nodes are available: 2 Insufficient cpu."
    last = f'"Unable to schedule pod; no fit; waiting" pod="ml/{name}" err="{words}"'
    lines.append(write_klog(last, FILE, count))
    if node:
        lines.append(write_klog(f'"Successfully bound pod to node" pod="ml/{name}" node="{node}"', FILE, count + 1))
    return lines


def collect_pods(lines: list[bytes], *, keeps_latest: bool) -> LogPods:
    pods = LogPods()
    reader = KubeSchedulerLog(note=pods.note, keeps_latest=keeps_latest)
    pods.add(read_lines(reader, lines))
    return pods


def write_latest(pod: PodInLog) -> bytes:
    return encode_schedulerlog(pod.find_latest()[0])


@pytest.mark.parametrize("node", ["", "n1"])
def test_only_the_latest_attempts_are_built_and_all_are_counted(node: str) -> None:
    pairs = zip(write_attempts("p", 9, node), write_attempts("q", 9), strict=False)
    lines = [line for pair in pairs for line in pair] + write_attempts("p", 9, node)[9:]
    every, latest = (collect_pods(lines, keeps_latest=value) for value in (False, True))
    assert list(latest.pods) == list(every.pods) == ["ml/p", "ml/q"]
    for name, pod in latest.pods.items():
        assert write_latest(pod) == write_latest(every.pods[name])
    assert [pod.attempts for pod in latest.pods.values()] == [9 + bool(node), 9]
    assert [pod.attempts for pod in every.pods.values()] == [9 + bool(node), 9]


def test_long_texts_and_evictions_do_not_wait_for_the_end() -> None:
    words = "0/9 nodes are available: " + ", ".join(f"1 reason {number}" for number in range(900)) + "."
    long = write_klog(f'"Unable to schedule pod; no fit; waiting" pod="ml/p" err="{words}"', FILE, 3)
    evicted = write_klog(
        '"Preemptor Pod preempted victim Pod" preemptor="ml/q" victim="ml/p" node="n1"', "preemption.go", 5
    )
    lines = [*write_attempts("p", 2), long, *write_attempts("p", 1, "n1"), evicted]
    every, latest = (collect_pods(lines, keeps_latest=value) for value in (False, True))
    assert write_latest(latest.pods["ml/p"]) == write_latest(every.pods["ml/p"])
    assert latest.pods["ml/p"].attempts == every.pods["ml/p"].attempts
