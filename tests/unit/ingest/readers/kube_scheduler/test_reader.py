"""kube-scheduler's own log: what its lines say by version, and lines that are no decision."""

import pytest

from engine.diagnosis.logged_facts import UnfinishedAttempt
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
