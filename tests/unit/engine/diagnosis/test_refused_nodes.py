"""Nodes that an attempt refused, each under one reason: which of several decides, and which nodes count together.

The order of reasons is that of `engine.diagnosis.tree`: what passes when others end, then what an administrator can
repair, then what the pod itself excludes. Counts are worked out by hand.
"""

from typing import Any

import numpy as np
import pytest

from engine.diagnosis.refused_nodes import (
    NODE_LINES_LEVEL,
    RefusedNodes,
    RowNames,
    count_judged_nodes,
    find_deciding_reason,
    find_refused_request,
    group_refused_nodes,
    is_about_devices,
    split_by_refusal,
)
from engine.hami.reason_codes import ReasonCode as Code
from schemas.events import AttemptSummarized, Reconstruction, Refusal, Request
from tests.support.builders.events import STARTED, a_refusal, a_report, a_request, a_summary

MEMORY, CORES, TYPE = Code.CARD_INSUFFICIENT_MEMORY, Code.CARD_INSUFFICIENT_CORE, Code.CARD_TYPE_MISMATCH


def list_groups(attempt: AttemptSummarized, excluded_by: str = "") -> list[tuple[str, int, list[str]]]:
    groups = group_refused_nodes(attempt, excluded_by)
    return [(group.code, group.count, list(group.names)) for group in groups]


def an_attempt(refusals: list[Refusal], refusal: list[int], **fields: Any) -> AttemptSummarized:
    """An attempt whose nodes n0, n1, … were refused for the reasons with these numbers."""
    plain: dict[str, Any] = {"refusals": refusals, "refusal": refusal, "requests": [a_request()]}
    return a_summary([f"n{index}" for index in range(len(refusal))], **plain | fields)


def test_names_are_those_of_the_rows_in_the_order_of_the_attempt() -> None:
    nodes = ("a", "b", "c", "d")
    names = RowNames(nodes, np.array([0, 2, 3]))
    assert (len(names), names[1], names[-1], list(names)) == (3, "c", "d", ["a", "c", "d"])
    assert list(names[1:]) == ["c", "d"]
    assert list(RowNames(nodes, np.array([3])).join(RowNames(nodes, np.array([0, 2])))) == ["a", "c", "d"]


@pytest.mark.parametrize(
    ("code", "of_devices", "has_devices", "has_accepted"),
    [
        (MEMORY, True, True, True),
        (TYPE, True, True, False),
        (Code.CARD_UUID_MISMATCH, True, True, False),
        (Code.NODE_INSUFFICIENT_DEVICE, True, False, True),
        (Code.NODE_UNREGISTERED, False, False, False),
        ("TaintNotTolerated", False, False, True),
    ],
)
def test_a_reason_is_about_devices_where_they_were_looked_at(
    code: str, of_devices: bool, has_devices: bool, has_accepted: bool
) -> None:
    group = RefusedNodes(code, 1)
    assert (is_about_devices(code), group.has_devices, group.has_accepted_devices) == (
        of_devices, has_devices, has_accepted,
    )  # fmt: skip


def test_nodes_with_the_same_reason_are_one_group_and_the_important_come_first() -> None:
    attempt = an_attempt(
        [a_refusal(CardTypeMismatch=8), a_refusal(CardInsufficientMemory=8), a_refusal(CardInsufficientMemory=4)],
        [0, 1, 0, 2, 0],
    )
    # Full devices are free again when pods end; three nodes of another model are not.
    assert list_groups(attempt) == [(MEMORY, 2, ["n1", "n3"]), (TYPE, 3, ["n0", "n2", "n4"])]


def test_of_groups_of_one_kind_the_larger_comes_first() -> None:
    attempt = an_attempt([a_refusal(CardInsufficientCore=8), a_refusal(CardInsufficientMemory=8)], [0, 1, 1])
    assert list_groups(attempt) == [(MEMORY, 2, ["n1", "n2"]), (CORES, 1, ["n0"])]
    attempt = an_attempt([a_refusal(CardInsufficientCore=8), a_refusal(CardInsufficientMemory=8)], [0, 1, 0])
    assert list_groups(attempt) == [(CORES, 2, ["n0", "n2"]), (MEMORY, 1, ["n1"])]


def test_a_reason_that_all_devices_have_stands_for_those_of_devices_only() -> None:
    attempt = an_attempt([a_refusal(CardInsufficientMemory=8), Refusal(bare=Code.NODE_UNREGISTERED)], [0, 1])
    assert list_groups(attempt, TYPE) == [(TYPE, 1, ["n0"]), (Code.NODE_UNREGISTERED, 1, ["n1"])]


@pytest.mark.parametrize(
    ("requests", "refused_by", "groups"),
    [
        # Containers with equal requests are one group, those with different ones two.
        ([a_request(container="a"), a_request(container="b")], [0, 1], [(2, {"a", "b"})]),
        ([a_request(container="a"), a_request(container="b", init=True)], [0, 1], [(2, {"a", "b"})]),
        ([a_request(container="a"), a_request(container="b", count=1)], [0, 1], [(1, {"a"}), (1, {"b"})]),
        ([a_request(container="a"), a_request(container="b")], [0, 0], [(2, {"a"})]),
    ],
)
def test_nodes_that_refused_different_requests_are_different_groups(
    requests: list[Request], refused_by: list[int], groups: list[tuple[int, set[str]]]
) -> None:
    attempt = an_attempt([a_refusal(CardInsufficientMemory=8)], [0, 0], requests=requests, refused_by=refused_by)
    assert [(group.count, set(group.containers)) for group in group_refused_nodes(attempt)] == groups


def test_a_reason_that_does_not_name_the_request_is_one_group_for_all_requests() -> None:
    requests = [a_request(container="a"), a_request(container="b", count=1)]
    attempt = an_attempt([a_refusal(CardTypeMismatch=8)], [0, 0], requests=requests, refused_by=[0, 1])
    (group,) = group_refused_nodes(attempt)
    assert (group.count, group.containers) == (2, frozenset("ab"))


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        # A reason that passes when others end comes before one of the pod itself, whatever the numbers.
        ({TYPE: 7, MEMORY: 1}, MEMORY),
        ({MEMORY: 1, TYPE: 7}, MEMORY),
        # Of one kind that of more devices decides.
        ({MEMORY: 5, CORES: 3}, MEMORY),
        ({MEMORY: 3, CORES: 5}, CORES),
        # Of as many the one checked later is nearer to a fit; a reason of no device is none.
        ({MEMORY: 4, CORES: 4}, CORES),
        ({MEMORY: 8, CORES: 0}, MEMORY),
        ({MEMORY: 0}, Code.NODE_UNFIT_POD),
        ({}, Code.NODE_UNFIT_POD),
    ],
)
def test_of_several_reasons_of_a_node_one_decides(counts: dict[str, int], code: str) -> None:
    assert find_deciding_reason(Refusal(counts=counts, devices=8)) == (code, ())


@pytest.mark.parametrize(
    ("weights", "code"),
    [
        (None, MEMORY),
        # Of more nodes, then of more devices of the attempt, then of more of the node.
        ({MEMORY: (1, 9), CORES: (2, 1)}, CORES),
        ({MEMORY: (2, 1), CORES: (1, 9)}, MEMORY),
        ({MEMORY: (2, 5), CORES: (2, 6)}, CORES),
        ({MEMORY: (2, 6), CORES: (2, 6)}, MEMORY),
        ({CORES: (1, 0)}, CORES),
    ],
)
def test_of_a_kind_the_reason_of_more_nodes_of_the_attempt_decides(
    weights: dict[str, tuple[int, int]] | None, code: str
) -> None:
    assert find_deciding_reason(Refusal(counts={MEMORY: 5, CORES: 3}, devices=8), weights) == (code, ())


def test_nodes_of_an_attempt_are_counted_for_each_of_their_reasons() -> None:
    """Cores refuse three nodes, memory two: of the node with both, cores decide, though more devices lack memory."""
    refusals = [a_refusal(CardInsufficientCore=8), a_refusal(CardInsufficientMemory=5, CardInsufficientCore=3)]
    attempt = an_attempt([*refusals, a_refusal(CardInsufficientMemory=1)], [0, 1, 0, 2])
    assert list_groups(attempt) == [(CORES, 3, ["n0", "n1", "n2"]), (MEMORY, 1, ["n3"])]


GPUS = "Insufficient nvidia.com/gpu"
LACKS_GPUS, LACKS_CPU = Refusal(bare=GPUS), Refusal(bare="Insufficient cpu")
EQUAL = Reconstruction(agreement="equal")


@pytest.mark.parametrize(
    ("refusals", "refusal", "counted", "reconstruction", "groups"),
    [
        # Nodes that a reader has worked out name those that the scheduler counts, where they are as many.
        ([LACKS_GPUS], [0, 0], {GPUS: 2}, EQUAL, [("InsufficientResource", 2, ["n0", "n1"])]),
        ([LACKS_GPUS], [0, 0], {GPUS: 3}, EQUAL, [("InsufficientResource", 3, [])]),
        ([LACKS_GPUS], [0, 0], {GPUS: 1}, EQUAL, [("InsufficientResource", 1, [])]),
        (
            [LACKS_GPUS, LACKS_CPU], [0, 1, 0], {GPUS: 2, "Insufficient cpu": 2}, EQUAL,
            [("InsufficientResource", 2, ["n0", "n2"]), ("InsufficientResource", 2, [])],
        ),
        # One count of GPUs for several reasons of shared devices is divided.
        (
            [a_refusal(CardInsufficientCore=8), a_refusal(CardInsufficientMemory=8), a_refusal(CardInsufficientCore=4)],
            [0, 1, 2], {GPUS: 3}, EQUAL, [(CORES, 2, ["n0", "n2"]), (MEMORY, 1, ["n1"])],
        ),
        # Without counts, or of a source that names what it judged, all are listed.
        ([LACKS_GPUS], [0, 0], {}, EQUAL, [("InsufficientResource", 2, ["n0", "n1"])]),
        (
            [LACKS_CPU], [0, 0], {GPUS: 3}, None,
            [("InsufficientResource", 3, []), ("InsufficientResource", 2, ["n0", "n1"])],
        ),
    ],
)  # fmt: skip
def test_a_count_of_the_scheduler_holds_against_nodes_that_were_worked_out(
    refusals: list[Refusal], refusal: list[int], counted: dict[str, int], reconstruction: Reconstruction | None,
    groups: list[tuple[str, int, list[str]]],
) -> None:  # fmt: skip
    attempt = an_attempt(refusals, refusal, refused_nodes=counted, reconstruction=reconstruction, offered_nodes=9)
    assert list_groups(attempt) == groups


@pytest.mark.parametrize(
    ("requests", "container"),
    [
        ([a_request(container="a")], "a"),
        ([a_request(container="a", count=0), a_request(container="b")], "b"),
        ([a_request(container="a"), a_request(container="b")], None),
        ([a_request(container="a", count=0)], None),
    ],
)
def test_a_counted_group_has_the_request_where_only_one_container_asks(
    requests: list[Request], container: str | None
) -> None:
    (group,) = group_refused_nodes(a_summary([], refused_nodes={GPUS: 2}, requests=requests))
    assert (group.request.container if group.request else None) == container


def test_groups_that_are_joined_have_the_request_of_the_largest() -> None:
    requests = [a_request(container="a"), a_request(container="b", count=1)]
    attempt = an_attempt([a_refusal(CardTypeMismatch=8)], [0, 0, 0], requests=requests, refused_by=[0, 1, 1])
    (group,) = group_refused_nodes(attempt)
    assert group.request
    assert group.request.container == "b"


def test_a_refusal_of_the_whole_node_has_the_details_of_its_words() -> None:
    assert find_deciding_reason(Refusal(bare="Insufficient nvidia.com/mig-1g.5gb")) == (
        "InsufficientResource", ("nvidia.com/mig-1g.5gb",),
    )  # fmt: skip
    assert find_deciding_reason(Refusal(bare=Code.NODE_UNREGISTERED, cause="no annotation")) == (
        Code.NODE_UNREGISTERED, ("no annotation",),
    )  # fmt: skip
    assert find_deciding_reason(Refusal(uncounted=["Insufficient cpu"])) == ("InsufficientResource", ("cpu",))


ASKS, ASKS_TOO, ASKS_NOTHING = a_request(container="a"), a_request(container="b"), a_request(container="c", count=0)
BARE, COUNTED = Refusal(bare=Code.NODE_UNREGISTERED), a_refusal(CardInsufficientMemory=8)


@pytest.mark.parametrize(
    ("requests", "refusal", "refused_by", "container"),
    [
        ([ASKS, ASKS_TOO], COUNTED, 1, "b"),
        ([ASKS, ASKS_TOO], COUNTED, 0, "a"),
        ([ASKS, ASKS_NOTHING], COUNTED, 1, None),
        # Without the container: the only one that asks, or the first if the node as a whole was refused.
        ([ASKS_NOTHING, ASKS], COUNTED, -1, "a"),
        ([ASKS, ASKS_TOO], COUNTED, -1, None),
        ([ASKS, ASKS_TOO], BARE, -1, "a"),
        ([ASKS_NOTHING, ASKS_TOO], BARE, -1, "b"),
        ([ASKS_NOTHING], BARE, -1, None),
        ([], COUNTED, -1, None),
    ],
)
def test_the_refused_request_is_named_where_the_source_says_which(
    requests: list[Request], refusal: Refusal, refused_by: int, container: str | None
) -> None:
    attempt = a_summary([], requests=requests)
    request = find_refused_request(attempt, refusal, refused_by)
    assert (request.container if request else None) == container


@pytest.mark.parametrize(
    ("level", "count"), [(NODE_LINES_LEVEL - 1, 0), (NODE_LINES_LEVEL, 3), (NODE_LINES_LEVEL + 1, 3)]
)
def test_nodes_that_hamis_log_would_have_named_are_not_registered(level: int, count: int) -> None:
    report = a_report(source="hami-log", levels=[0, level])
    attempt = a_summary(["n0", "n1"], offered_nodes=5, reports=[report], ended_at=STARTED)
    assert count_judged_nodes(attempt) == 2 + count
    expected = [(MEMORY, 2, ["n0", "n1"]), *([(Code.NODE_UNREGISTERED, count, [])] if count else [])]
    assert list_groups(attempt) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"reports": [a_report(source="hami-log", levels=[5]), a_report()]},
        {"reports": [a_report(levels=[5])]},
        {"reports": [a_report(source="hami-log", levels=[])]},
        {"ended_at": None},
        {"chosen": "n0"},
        {"offered_nodes": 2},
    ],
)
def test_nodes_are_not_taken_for_unregistered_where_the_log_does_not_prove_it(fields: dict[str, Any]) -> None:
    report = a_report(source="hami-log", levels=[5])
    plain: dict[str, Any] = {"offered_nodes": 5, "reports": [report], "ended_at": STARTED}
    assert count_judged_nodes(a_summary(["n0", "n1"], **plain | fields)) == 2


def test_nodes_that_were_not_reached_were_not_judged() -> None:
    attempt = a_summary(["n0", "n1", "n2"], verdicts=["refused", "not reached"], verdict=[0, 1, 1], refusal=[0, -1, -1])
    assert count_judged_nodes(attempt) == 1
    assert list_groups(attempt) == [(MEMORY, 1, ["n0"])]


def test_a_count_of_the_scheduler_is_no_more_than_the_nodes_that_it_looked_at() -> None:
    """kube-scheduler counts a node for each of its reasons: eight of five nodes."""
    words = {"Insufficient nvidia.com/gpu": 4, "Insufficient cpu": 4}
    attempt = a_summary([], refused_nodes=words, offered_nodes=5)
    assert count_judged_nodes(attempt) == 5
    # Each resource is an obstacle of its own.
    assert [(group.code, group.count, group.details) for group in group_refused_nodes(attempt)] == [
        ("InsufficientResource", 4, ("nvidia.com/gpu",)), ("InsufficientResource", 4, ("cpu",)),
    ]  # fmt: skip
    assert count_judged_nodes(a_summary([], refused_nodes=words, offered_nodes=3)) == 4
    taints = {"node(s) had untolerated taint {a: }": 4, "node(s) had untolerated taint {b: }": 4}
    (group,) = group_refused_nodes(a_summary([], refused_nodes=taints, offered_nodes=5))
    assert (group.code, group.count) == ("TaintNotTolerated", 5)
    assert len(group.details) == 2


def test_rows_are_split_by_refusal_and_by_the_container_that_was_refused() -> None:
    attempt = an_attempt(
        [COUNTED, a_refusal(CardTypeMismatch=8)], [0, 1, 0, 0, 1], requests=[ASKS, ASKS_TOO], refused_by=[0, 0, 1, 0, 0]
    )
    rows = np.array([0, 1, 2, 3, 4])
    assert sorted(group.tolist() for group in split_by_refusal(attempt, rows)) == [[0, 3], [1, 4], [2]]
    assert list(split_by_refusal(attempt, np.array([], np.intp))) == []


def test_nodes_that_no_extender_saw_are_counted_from_kube_schedulers_words() -> None:
    """The words as kube-scheduler 1.34 writes them, of nine nodes: HAMi's log names the only one that it judged."""
    words = (
        "0/9 nodes are available: 1 NodeUnfitPod, 2 node unregistered, 6 node(s) had untolerated taint {a: b, c: d}. "
        "preemption: 0/9 nodes are available: 9 Preemption is not helpful for scheduling."
    )
    reports = [
        a_report(source="hami-log", levels=[5], gives=["filter"]),
        a_report(source="kube-events", gives=["scheduler message"]),
    ]
    attempt = an_attempt([a_refusal(CardInsufficientMemory=2)], [0], scheduler_message=words, reports=reports)
    assert list_groups(attempt) == [
        (MEMORY, 1, ["n0"]), ("TaintNotTolerated", 6, []), (Code.NODE_UNREGISTERED, 2, []),
    ]  # fmt: skip
    assert count_judged_nodes(attempt) == 9


@pytest.mark.parametrize("source", ["kai-log", "kube-events"])
def test_a_scheduler_that_names_all_nodes_needs_no_words_of_an_event(source: str) -> None:
    reports = [
        a_report(source=source, gives=["filter"]),
        a_report(source="kube-scheduler-log", gives=["scheduler message"]),
    ]
    attempt = an_attempt(
        [a_refusal(CardInsufficientMemory=2)], [0], reports=reports,
        scheduler_message="0/3 nodes are available: 2 node(s) were unschedulable.",
    )  # fmt: skip
    assert list_groups(attempt) == [(MEMORY, 1, ["n0"])]
