"""Volcano's log: refused nodes of a session, gangs that give back their nodes, and lines that are no decision."""

from engine.diagnosis.logged_facts import EarlierAttempts, LoggedFact, UnfinishedAttempt
from ingest.readers.registry import find_source
from ingest.readers.volcano.grammar import is_volcano_line
from ingest.readers.volcano.reader import VolcanoLog
from schemas.events import NodesJudged
from tests.support.builders.klog_lines import list_ends, read_lines, write_klog

OPEN = write_klog("Open Session 1 with <1> Job and <1> Queues", "session.go")
OFFERED = write_klog("There are <2> nodes for Job <ml/group>", "allocate.go", 1)
REFUSED = [
    write_klog(f"Predicates failed: task ml/p on node n{index} fit failed: Insufficient cpu", "predicate_helper.go", 2)
    for index in (1, 2)
]
COUNTED = write_klog("Task <ml/p> is Pending: 0/2 nodes are unavailable: 2 Insufficient cpu.", "job_info.go", 3)
CLOSE = write_klog("Close Session 1", "session.go", 4)


def test_a_session_refuses_nodes_by_name() -> None:
    events = read_lines(VolcanoLog(), [OPEN, OFFERED, *REFUSED, COUNTED, CLOSE])
    (end,) = list_ends(events)
    assert (str(end.pod), end.scheduler, end.chosen) == ("ml/p", "volcano", None)
    names = {name for event in events if isinstance(event, NodesJudged) for name in event.nodes}
    assert names == {"n1", "n2"} or end.refused_nodes == {"Insufficient cpu": 2}


def test_refused_nodes_are_counted_where_the_session_has_no_words_of_its_own() -> None:
    (end,) = list_ends(read_lines(VolcanoLog(), [OPEN, *REFUSED, CLOSE]))
    assert "2 Insufficient cpu" in end.scheduler_message


def test_a_binding_is_a_choice() -> None:
    binding = write_klog("Binding Task <ml/p> to node <n1>", "session.go", 2)
    (end,) = list_ends(read_lines(VolcanoLog(), [OPEN, binding, CLOSE]))
    assert end.chosen == "n1"


def test_a_gang_that_is_not_ready_gives_its_node_back() -> None:
    binding = write_klog("Binding Task <ml/p> to node <n1>", "session.go", 2)
    waiting = write_klog("Updating pod condition for ml/p to (PodScheduled==False)", "cache.go", 3)
    (end,) = list_ends(read_lines(VolcanoLog(), [OPEN, binding, waiting, CLOSE]))
    assert end.chosen is None
    assert "pod group is not ready" in (end.error or end.scheduler_message)


def test_a_choice_whose_session_has_no_end_is_noted_as_unfinished() -> None:
    """A gang that is not ready gives its nodes back at the end of the session: until then nothing is certain."""
    noted: list[LoggedFact | UnfinishedAttempt | EarlierAttempts] = []
    binding = write_klog("Binding Task <ml/p> to node <n1>", "session.go", 2)
    assert list_ends(read_lines(VolcanoLog(note=noted.append), [OPEN, binding])) == []
    (unfinished,) = noted
    assert isinstance(unfinished, UnfinishedAttempt)
    assert (unfinished.pod, unfinished.scheduler, unfinished.reader) == ("ml/p", "volcano", "volcano-log")
    assert read_lines(VolcanoLog(note=noted.append), [OPEN, *REFUSED])
    assert len(noted) == 1


def test_its_lines_are_recognised_and_others_are_not() -> None:
    assert is_volcano_line(COUNTED)
    source = find_source(REFUSED[0])
    assert source is not None
    assert source.name == "volcano-log"
    assert not is_volcano_line(write_klog("Open Session 1", "main.go"))


def test_noise_and_unknown_lines_are_counted() -> None:
    reader = VolcanoLog()
    read_lines(reader, [write_klog("something else", "allocate.go"), write_klog("something else", "main.go"), b"?"])
    assert (reader.counts.lines["noise"], reader.counts.lines["unknown"]) == (1, 2)


def test_a_refusal_that_names_no_resource_has_that_of_the_comparison_before() -> None:
    amounts = "<cpu 100.00, memory 0.00, vendor.io/card 2000.00> vs. <cpu 50.00, memory 9.00, vendor.io/card 1000.00>"
    refusal = (
        "Predicates failed for task <ml/p> on node <n1>: task ml/p on node n1 fit failed: node(s) resource fit failed"
    )
    lines = [
        write_klog(f"Considering Task <ml/p> on node <n1>: {amounts}", "scheduler_helper.go", 1),
        write_klog(refusal, "scheduler_helper.go", 2),
    ]
    (end,) = list_ends(read_lines(VolcanoLog(), lines))
    assert end.scheduler_message == "0/1 nodes are unavailable: 1 Insufficient vendor.io/card."
